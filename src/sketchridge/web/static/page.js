"use strict";
// The page works without this file. With it, what others do appears by itself, and nothing that was
// typed is lost: cells are kept in this tab until the server says that they are saved.

const EVERY = 2000;  // milliseconds between two questions whether anything has changed
const KEY = "sketchridge-drafts";
const body = document.body;
let mark = body.dataset.mark || "";
let busy = document.querySelectorAll("#jobs .work").length > 0;
let asking = false;

// What was typed and is not saved

function drafts() {
  try { return JSON.parse(sessionStorage.getItem(KEY)) || {}; } catch { return {}; }
}

function keep(all) {
  try { sessionStorage.setItem(KEY, JSON.stringify(all)); } catch { /* a tab without a memory */ }
}

function remember(input) {
  const all = drafts();
  if (input.value.trim()) all[input.dataset.draft] = { value: input.value, name: input.dataset.name };
  else delete all[input.dataset.draft];
  keep(all);
}

function forgetSaved() {
  const saved = (body.dataset.saved || "").split(" ").filter(Boolean);
  if (!saved.length) return;
  const all = drafts();
  saved.forEach((row) => delete all[row]);
  keep(all);
}

function restoreDrafts(root) {
  const all = drafts();
  root.querySelectorAll("input[data-draft]").forEach((input) => {
    const draft = all[input.dataset.draft];
    if (draft && !input.value) input.value = draft.value;
    if (draft && input.value) input.classList.add("changed");
  });
  showOrphans();
}

function showOrphans() {
  const box = document.getElementById("drafts");
  const all = drafts();
  const here = new Set([...document.querySelectorAll("input[data-draft]")].map((i) => i.dataset.draft));
  const rows = Object.keys(all).filter((row) => !here.has(row));
  box.replaceChildren();
  box.hidden = !rows.length;
  if (!rows.length) return;
  const note = document.createElement("p");
  note.className = "notice warn";
  note.append("Typed in this window and not saved: ");
  rows.slice(0, 20).forEach((row, i) => {
    const link = document.createElement("a");
    link.href = "/points/" + encodeURIComponent(row);
    link.textContent = all[row].name + " = " + all[row].value;
    note.append(i ? ", " : "", link);
  });
  if (rows.length > 20) note.append(" and " + (rows.length - 20) + " more");
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Forget";
  button.addEventListener("click", () => {
    const now = drafts();
    rows.forEach((row) => delete now[row]);
    keep(now);
    showOrphans();
  });
  note.append(". ", button);
  box.append(note);
}

document.addEventListener("input", (event) => {
  const input = event.target;
  if (input.dataset.draft) {
    remember(input);
    input.classList.toggle("changed", Boolean(input.value.trim()));
  }
  if (input.dataset.given !== undefined) {
    input.classList.toggle("changed", input.value !== input.dataset.given);
  }
});

// What others do

function isTouched(input) {
  if (input === document.activeElement) return true;
  if (input.type === "hidden" || input.type === "submit" || input.type === "button") return false;
  if (input.type === "checkbox") return input.checked !== input.defaultChecked;
  if (input.dataset.given !== undefined) return input.value !== input.dataset.given;
  if (input.tagName === "SELECT") return false;
  return input.value !== input.defaultValue || Boolean(input.dataset.draft && input.value);
}

function touched(root) {
  return [...root.querySelectorAll("input, select, textarea")].some(isTouched);
}

function mergeRows(old, fresh) {
  const wanted = new Map([...fresh.children].map((row) => [row.dataset.row, row]));
  [...old.children].forEach((row) => {
    if (wanted.has(row.dataset.row)) return;
    if (!touched(row)) { row.remove(); return; }
    if (row.classList.contains("gone")) return;
    row.classList.add("gone");
    const note = document.createElement("span");
    note.className = "wrong";
    note.textContent = "This point has been labeled, released or has failed elsewhere; what you typed is not saved.";
    row.querySelector(".field").append(note);
  });
  let last = null;
  wanted.forEach((row, key) => {
    let now = [...old.children].find((r) => r.dataset.row === key);
    if (!now) {
      now = document.importNode(row, true);
      if (last) last.after(now); else old.prepend(now);
    } else if (!touched(now) && now.innerHTML !== row.innerHTML) {
      const next = document.importNode(row, true);
      now.replaceWith(next);
      now = next;
    }
    last = now;
  });
}

function replace(old, fresh) {
  if (old.querySelector("[name=accept]")) return;  // a question that waits for its answer
  if (old.innerHTML === fresh.innerHTML) return;
  const a = old.querySelector("[data-rows]"), b = fresh.querySelector("[data-rows]");
  if (a && b) { mergeRows(a, b); return; }
  if (touched(old)) {
    if (a) mergeRows(a, document.createElement("tbody"));
    return;
  }
  old.replaceChildren(...[...fresh.childNodes].map((node) => document.importNode(node, true)));
}

async function refresh() {
  const here = new URL(location.href);
  here.searchParams.delete("outside");
  const response = await fetch(here, { headers: { Accept: "text/html" } });
  if (!response.ok && response.status !== 409) return false;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const live = [...document.querySelectorAll("[data-live]")];
  const isOther = !live.length || live.every((part) => part.id === "jobs" || part.id === "answer"
    || !page.getElementById(part.id));
  if (isOther && page.title !== document.title) {  // a campaign has begun, or gone
    location.reload();
    return true;
  }
  live.forEach((old) => {
    const fresh = page.getElementById(old.id);
    if (fresh) replace(old, fresh);
  });
  document.querySelectorAll("input[name=once]").forEach((input) => {
    const fresh = page.querySelector("input[name=once]");
    if (fresh) input.value = fresh.value;
  });
  mark = page.body.dataset.mark || "";
  restoreDrafts(document);
  return true;
}

function offline(sentence) {
  const box = document.getElementById("offline");
  box.hidden = !sentence;
  box.replaceChildren();
  if (!sentence) return;
  const note = document.createElement("p");
  note.className = "notice bad";
  note.textContent = sentence;
  box.append(note);
}

async function look() {
  if (asking || document.hidden) return;
  asking = true;
  try {
    const response = await fetch("/state", { headers: { Accept: "application/json" } });
    if (response.status === 401) {
      offline("This address is out of date: the page was started anew. Open the address that the "
        + "terminal shows now; what you typed here stays in this window.");
      return;
    }
    if (!response.ok) {
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const said = page.querySelector("[role=alert]");
      offline(said ? said.textContent : "The page cannot look at the campaign just now.");
      return;
    }
    const state = await response.json();
    offline("");
    const works = state.jobs.length > 0;
    if (state.mark !== mark || works !== busy) {
      await refresh();
      busy = works;
    } else {
      const seconds = document.querySelectorAll("#jobs .seconds");
      state.jobs.forEach((job, i) => { if (seconds[i]) seconds[i].textContent = job.seconds + " s"; });
    }
  } catch {
    offline("The page does not answer: is it still running in the terminal? What you typed stays in "
      + "this window.");
  } finally {
    asking = false;
  }
}

// Forms

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.confirm && !window.confirm(form.dataset.confirm)) {
    event.preventDefault();
    return;
  }
  if (form.method === "post") {
    setTimeout(() => form.querySelectorAll("button").forEach((b) => { b.disabled = true; }), 0);
  }
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-print]")) window.print();
});

window.addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  document.querySelectorAll("form button").forEach((b) => { b.disabled = false; });
  look();
});

document.addEventListener("visibilitychange", look);
if (body.dataset.at) history.replaceState(null, "", body.dataset.at);
forgetSaved();
restoreDrafts(document);
if (location.search.includes("said=")) {  // an answer is shown once
  const here = new URL(location.href);
  here.searchParams.delete("said");
  if (!busy) history.replaceState(null, "", here);
}
if (!document.querySelector("meta[http-equiv=refresh]")) setInterval(look, EVERY);
