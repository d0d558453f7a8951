// Builds elements. Texts become text nodes, never markup: what a model wrote can't be anything else on this page.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// element("p", {class: "soft"}, "text", child): false and null attributes and null children are left out.
export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children.map((child) => typeof child === "number" ? String(child) : child));
}

export const byId = (id) => document.getElementById(id);

// Sets a text only where it differs, so that live regions say nothing twice.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
