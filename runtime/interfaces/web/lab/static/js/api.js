// Sends requests to the server. Paths are relative to this page, the key is in a header, and problems (RFC 9457) become errors.

const LAB = new URL("../../", import.meta.url); // .../lab/, wherever the server is mounted

// Raised if the server refuses a request or can't be reached. `status` is 0 if there was no response.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || "");
    this.status = status;
    this.title = body.title || (status ? `The server answered ${status}` : "The server does not respond");
    this.detail = body.detail || "";
    this.body = body;
  }
}

async function problemOf(response) {
  const text = await response.text().catch(() => "");
  let body = {};
  try {
    body = JSON.parse(text);
  } catch {
    body = {detail: text.slice(0, 300)};
  }
  return new Problem(response.status, body !== null && typeof body === "object" ? body : {});
}

export class Api {
  constructor(key) {
    this.key = key; // () => the key to send; "" means no key
  }

  async asked(path, {method = "GET", json, headers = {}, signal} = {}) {
    const key = this.key();
    const sent = {...headers};
    if (key) sent.authorization = `Bearer ${key}`;
    if (json !== undefined) sent["content-type"] = "application/json";
    let response;
    try {
      response = await fetch(new URL(path, LAB), {
        method, headers: sent, signal, body: json === undefined ? undefined : JSON.stringify(json),
        credentials: "omit", cache: "no-store", redirect: "error",
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem(0, {detail: "Check whether it is running. Finished iterations are stored on the server."});
    }
    if (!response.ok) throw await problemOf(response);
    return response;
  }

  async json(path, options) {
    return (await this.asked(path, options)).json();
  }

  about() {
    return this.json("about");
  }

  start(request, signal) {
    return this.asked("generate-answer/stream", {method: "POST", json: request, signal, headers: {accept: "text/event-stream"}});
  }

  follow(id, after, signal) {
    const headers = {accept: "text/event-stream"};
    if (after) headers["last-event-id"] = after;
    return this.asked(`runs/${encodeURIComponent(id)}/events`, {signal, headers});
  }

  runs(before, limit = 20) {
    const query = new URLSearchParams({limit});
    if (before) query.set("before", before);
    return this.json(`runs?${query}`);
  }

  run(id) {
    return this.json(`runs/${encodeURIComponent(id)}`);
  }

  cancel(id) {
    return this.asked(`runs/${encodeURIComponent(id)}/cancel`, {method: "POST"});
  }

  remove(id) {
    return this.asked(`runs/${encodeURIComponent(id)}`, {method: "DELETE"});
  }
}
