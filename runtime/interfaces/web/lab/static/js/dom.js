// Creates elements. Strings become text nodes, never markup, so text from a model can't inject elements into this page.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// element("p", {class: "soft"}, "text", child): false and null attributes and null children are omitted.
export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children.map((child) => typeof child === "number" ? String(child) : child));
}

export const byId = (id) => document.getElementById(id);

// Sets the text only if it differs, so that screen readers announce live regions only once.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
