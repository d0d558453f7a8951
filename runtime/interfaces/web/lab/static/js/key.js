// The key. It is requested if the server requires one, and is stored only in this tab's session storage.

import {byId, say} from "./dom.js";

const KEPT = "knotwork-lab-key";

export class Key {
  // `used` is called when the user has entered a key. It tries the key, and raises an error if the server refuses it.
  constructor(used) {
    this.panel = byId("key");
    this.field = byId("key-field");
    this.forget = byId("forget");
    byId("key-form").addEventListener("submit", async (event) => {
      event.preventDefault();
      const key = this.field.value.trim();
      if (!/^[\x21-\x7e]+$/.test(key)) return this.refuse(key ? "A key contains only letters, digits and punctuation" : "Enter your key");
      sessionStorage.setItem(KEPT, key);
      await used();
    });
    this.forget.addEventListener("click", () => {
      sessionStorage.removeItem(KEPT);
      location.reload();
    });
  }

  get value() {
    return sessionStorage.getItem(KEPT) || "";
  }

  accept() {
    this.panel.hidden = true;
    this.field.value = "";
    this.mark("");
    this.forget.hidden = !this.value;
  }

  ask(focus = true) {
    this.panel.hidden = false;
    this.forget.hidden = true;
    if (focus) this.field.focus();
  }

  // Reports that the key is wrong, and lets the user enter it again.
  refuse(message) {
    sessionStorage.removeItem(KEPT);
    this.ask();
    this.field.select();
    this.mark(message);
  }

  mark(message) {
    say(byId("key-fault"), message);
    if (message) this.field.setAttribute("aria-invalid", "true");
    else this.field.removeAttribute("aria-invalid");
  }
}
