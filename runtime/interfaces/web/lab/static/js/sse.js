// Reads server-sent events from the body of a fetch, because EventSource can neither POST nor send a key.
// https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

// Yields {id, name, data} until the stream ends; data is parsed JSON. Comments (heartbeats) and unknown fields are ignored.
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let id = "";
  let name = "";
  let data = [];
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return; // an incomplete event is not dispatched
      rest += value;
      // A CR at the end may be the first half of a CRLF, so it is kept until the next chunk.
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line === "") {
          if (data.length) yield {id, name: name || "message", data: JSON.parse(data.join("\n"))};
          name = "";
          data = [];
          continue;
        }
        const colon = line.indexOf(":");
        if (colon === 0) continue;
        const key = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (key === "data") data.push(text);
        else if (key === "event") name = text;
        else if (key === "id") id = text;
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // also close the connection if the consumer stops early
  }
}
