// Computes the changes between two answers, word by word (jsdiff). Time and size are limited, so long answers can't block the page.

import {diffWords} from "../vendor/jsdiff/diff/word.js";
import {element} from "./dom.js";

const LONGEST = 60_000; // characters of both texts together
const BOUNDS = {timeout: 250, maxEditLength: 4000};

// Returns nodes that show `after` with insertions and deletions; null if the texts are too long or too different.
export function changes(before, after) {
  if (before.length + after.length > LONGEST) return null;
  const parts = diffWords(before, after, BOUNDS);
  if (!parts) return null;
  return readable(parts).flatMap(({same, gone, come}) => (same === undefined ? [marked("del", come ? gone.trimEnd() : gone), marked("ins", come)] : [same]));
}

function marked(name, text) {
  return text.trim() === "" ? (name === "ins" ? text : "") : element(name, {}, text); // marked whitespace would look like a stripe
}

// Joins two changes if the unchanged text between them is not longer than either of them, so that a rewritten sentence is shown as
// one change, not as alternating words (like the "semantic cleanup" of diff-match-patch). Returns {same} and {gone, come} in order.
function readable(parts) {
  const done = [];
  for (const {added, removed, value} of parts) {
    if (!added && !removed) {
      done.push({same: value});
      continue;
    }
    if (done.at(-1)?.same !== undefined || !done.length) done.push({gone: "", come: ""});
    done.at(-1)[added ? "come" : "gone"] += value;
  }
  const joined = [];
  for (const part of done) {
    joined.push(part);
    while (joins(joined)) {
      const [first, {same}, last] = joined.splice(-3);
      joined.push({gone: first.gone + same + last.gone, come: first.come + same + last.come});
    }
  }
  return joined;
}

function joins(parts) {
  if (parts.length < 3 || parts.at(-1).same !== undefined) return false;
  const [first, {same}, last] = parts.slice(-3);
  const size = ({gone, come}) => Math.max(gone.length, come.length);
  return same.trim().length <= Math.min(size(first), size(last));
}
