// The live-events page. Whatever an event holds came from outside: it is only ever set as text.
"use strict";

const ROWS = 300;
const RECENT = 200;
const REFUSED_ROWS = 20;
const STRICT_ROWS = 12;
const SUMMARY_MS = 5000;
const LOST_MS = 10000;
const SETTLED_MS = 800;  // what comes sooner after the connection was there before

const FACTS = {
  user: ["user_id", "platform", "build", "country_code", "session_num"],
  session_end: ["user_id", "length", "platform", "session_num"],
  business: ["event_id", "amount", "currency", "cart_type", "transaction_num"],
  resource: ["event_id", "amount"],
  progression: ["event_id", "score", "attempt_num"],
  design: ["event_id", "value"],
  error: ["message", "severity", "function_name"],
  ads: ["ad_placement", "ad_action", "ad_type", "ad_sdk_name", "ad_fail_show_reason"],
  impression: ["ad_network_name", "ad_network_version", "impression_data"],
  sdk_error: ["error_category", "error_area", "error_action", "reason"],
  sdk_init: ["sdk_version", "platform", "app_boot_time"],
  health: ["sdk_version", "platform", "device"],
};
const ANY_FACTS = ["event_id", "user_id", "platform", "sdk_version"];

const KIND = {
  user: "player", session_end: "player", business: "money", resource: "money", ads: "money", impression: "money",
  progression: "play", design: "play", error: "trouble", sdk_error: "trouble", sdk_init: "sdk", health: "sdk",
};

const REASONS = {
  missing_required_property: "is missing",
  wrong_type: "has the wrong type",
  not_in_enum: "is not one of the allowed values",
  no_match: "does not have the required form",
  wrong_length: "is too short or too long",
  not_in_range: "is out of range",
  wrong_size: "has too few or too many entries",
  no_extra_properties_allowed: "is not documented",
  wrong_format: "cannot be read",
};

const REFUSALS = {
  400: "the body cannot be read",
  401: "game key, secret key or signature is wrong",
  404: "no such address",
  405: "wrong method: use POST",
  408: "the body was not complete in time",
  413: "the body is too large",
  503: "nothing was stored: send it again",
};

const at = (id) => document.getElementById(id);
const filters = at("filters");
const list = at("events");
const state = {
  source: null, openedAt: 0, titles: {}, counts: null, summary: null, waiting: [], fresh: 0, missed: 0,
  isPaused: false, isDrawing: false, lostTimer: 0,
};

// -- small things ----------------------------------------------------------------------------------------------------

function made(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

const number = (value) => value.toLocaleString("en-US");
const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));
const kindNamed = (category) => (Object.hasOwn(KIND, category) ? KIND[category] : "unknown");
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const clock = (seconds) => new Date(seconds * 1000).toISOString().slice(11, 19);
const dayOf = (date) => date.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

// -- one event -------------------------------------------------------------------------------------------------------

function row(entry, isNew) {
  const event = isObject(entry.event) ? entry.event : {};
  const category = typeof event.category === "string" ? event.category : "no category";
  const item = made("li", `event ${entry.status}${isNew ? " new" : ""}`);
  const details = made("details");
  const line = made("summary");
  line.append(
    whenOf(entry),
    kindOf(category),
    factsOf(event, category),
    made("span", "game", state.titles[entry.game_key] ?? entry.game_key),
    made("span", "status", entry.status === "accepted" ? "Accepted" : "Rejected"),
  );
  if (entry.errors.length) line.append(reasonsOf(entry.errors));
  if (entry.strict_errors) line.append(reasonsOf(entry.strict_errors, "The strict rules would refuse this:"));
  if (entry.remarks) line.append(remarksOf(entry.remarks));
  details.append(line);
  details.addEventListener("toggle", () => {
    if (details.childElementCount === 1) details.append(made("pre", "whole", JSON.stringify(entry.event, null, 2)));
  });
  item.append(details);
  return item;
}

function whenOf(entry) {
  const when = new Date(entry.arrival_ts * 1000);
  const time = made("time", "when", clock(entry.arrival_ts));
  time.dateTime = when.toISOString();
  time.title = `Arrived ${when.toISOString().replace("T", " ").slice(0, 19)} UTC`;
  if (dayOf(when) !== dayOf(new Date())) time.prepend(made("span", "day", dayOf(when)));
  return time;
}

function kindOf(category) {
  const kind = made("span", "category", category.slice(0, 64));
  kind.dataset.kind = kindNamed(category);
  return kind;
}

function factsOf(event, category) {
  const facts = made("span", "facts");
  const telling = Object.hasOwn(FACTS, category) ? FACTS[category] : ANY_FACTS;
  for (const name of telling) {
    if (!Object.hasOwn(event, name) || (event[name] ?? "") === "") continue;
    const isFirst = name === telling[0];
    const fact = made("span", isFirst ? "fact first" : "fact");
    if (!isFirst) fact.append(made("span", "label", name.replace(/_/g, " ")), " ");
    fact.append(made("b", "", asText(event[name]).slice(0, 120)));
    facts.append(fact, " ");
  }
  if (!Object.keys(event).length) facts.append(made("span", "fact none", "not an event"));
  return facts;
}

function reasonsOf(errors, introduction) {
  const reasons = made("ul", introduction ? "reasons strict" : "reasons");
  if (introduction) reasons.append(made("li", "", introduction));
  for (const { error_type: type, path } of errors) {
    const reason = made("li");
    reason.append(made("code", "", path), ` ${path === "/" ? "the event " : ""}${REASONS[type] ?? type}`);
    reason.title = type;
    reasons.append(reason);
  }
  return reasons;
}

function remarksOf(remarks) {
  const list = made("ul", "reasons remarks");
  list.append(...remarks.map((remark) => made("li", "", remark)));
  return list;
}

// -- one refused request ---------------------------------------------------------------------------------------------

function refused(entry) {
  const item = made("li");
  const line = made("p");
  line.append(
    whenOf(entry), " ",
    made("b", "", String(entry.status)), " ",
    made("span", "route", entry.route), " ",
    made("span", "game", entry.game ?? (entry.game_key ? `unknown key ${entry.game_key}` : "")),
  );
  item.append(line, made("p", "cause", entry.cause));
  const rows = at("refused-requests");
  rows.prepend(item);
  while (rows.childElementCount > REFUSED_ROWS) rows.lastElementChild.remove();
  at("refusals").hidden = false;
}

// -- the list --------------------------------------------------------------------------------------------------------

function arrived(entry) {
  state.waiting.push(entry);
  if (state.waiting.length > ROWS) state.waiting.shift();
  state.fresh += 1;
  draw();
}

function missed(count) {
  state.missed += count;
  at("missed").hidden = !state.missed;
  at("missed").textContent = `${plural(state.missed, "event")} came too fast to be shown`;
}

function draw() {
  if (state.isDrawing) return;
  state.isDrawing = true;
  setTimeout(() => {
    state.isDrawing = false;
    drawPause();
    if (!state.isPaused) drawWaiting();
    drawEmptiness();
  }, 50);
}

function drawWaiting() {
  const isNew = performance.now() - state.openedAt > SETTLED_MS;
  list.prepend(...state.waiting.map((entry) => row(entry, isNew)).reverse());
  while (list.childElementCount > ROWS) list.lastElementChild.remove();
  state.waiting = [];
  state.fresh = 0;
}

function drawEmptiness() {
  const isEmpty = !list.childElementCount;
  at("first").hidden = !isEmpty || isFiltered();
  at("nothing").hidden = !isEmpty || !isFiltered();
}

function drawPause() {
  const button = at("pause");
  button.setAttribute("aria-pressed", String(state.isPaused));
  button.textContent = state.isPaused ? (state.fresh ? `Resume · ${number(state.fresh)} new` : "Resume") : "Pause";
}

// -- counts ----------------------------------------------------------------------------------------------------------

function drawTotals() {
  const { summary, counts } = state;
  if (!summary || !counts) return;
  const since = summary.since_start;
  const fresh = counts.accepted - since.accepted;
  at("accepted").textContent = number(summary.accepted + fresh);
  at("rejected").textContent = number(summary.rejected + counts.rejected - since.rejected);
  at("rejected-total").classList.toggle("alarming", summary.rejected + counts.rejected > 0);
  at("pending").textContent = number(Math.max(0, summary.pending + fresh));
  const ends = Object.values(summary.available).map((interval) => new Date(interval.split("/")[1])).sort((a, b) => a - b);
  if (ends.length) at("available").textContent = `${dayOf(ends[0])}, ${ends[0].toISOString().slice(11, 16)}`;
  at("processing").hidden = !summary.processing;
  if (summary.processing) {
    const { events, committed, decoded, events_per_s, rest_s } = summary.processing;
    const rest = rest_s === null ? "" : `; ${number(events_per_s)} a second, about ${number(Math.ceil(rest_s))} s left`;
    at("processing").textContent =
      `Processing: ${number(decoded)} of ${number(events)} events decoded, ${number(committed)} in the tables${rest}.`;
  }
  at("repeats").hidden = !summary.duplicate;
  at("repeats").textContent =
    `${plural(summary.duplicate, "event")} repeated an event_uuid and ${summary.duplicate === 1 ? "was" : "were"} dropped. ` +
    "The real service is not known to drop any: a sandbox with --repeats count counts them.";
  at("faults").hidden = !summary.faults;
  at("faults").textContent = `${plural(summary.faults, "fault rule")} in force: the services fail on purpose.`;
}

function drawCounts() {
  const { counts } = state;
  const categories = Object.entries(counts.categories).map(([name, count]) => ({ value: name, label: name, ...count }));
  const games = Object.entries(counts.games).map(([key, count]) => ({ value: key, label: count.title, ...count }));
  categories.sort((a, b) => b.accepted + b.rejected - a.accepted - a.rejected || a.label.localeCompare(b.label));
  drawBars(at("categories"), "category", categories);
  drawBars(at("games"), "game_key", games);
  offer(filters.elements.game_key, games);
  offer(filters.elements.category, [...categories].sort((a, b) => a.label.localeCompare(b.label)));
  drawRefusals(counts.refused);
  drawStrict(counts.strict);
  drawDated(counts.dated_by_arrival);
  at("since").textContent = `Counted since ${clock(counts.since_ts)} UTC, when this sandbox started or was reset.`;
  drawTotals();
}

// What the strict rules would refuse of events, headers and inits that were accepted.
function drawStrict(strict) {
  const rows = Object.entries(strict ?? {}).filter(([, counts]) => counts.refused).flatMap(([part, counts]) => {
    const nouns = { events: "events", headers: "requests, for their headers", init: "inits" };
    const errors = Object.entries(counts.errors).sort(([, a], [, b]) => b - a).slice(0, STRICT_ROWS);
    return [
      made("li", "", `${number(counts.refused)} of ${number(counts.judged)} ${nouns[part] ?? part}`),
      ...errors.map(([error, count]) => {
        const [type, ...path] = error.split(" ");
        const item = made("li", "error");
        item.append(made("code", "", path.join(" ")), ` ${REASONS[type] ?? type}`, made("span", "count", number(count)));
        return item;
      }),
    ];
  });
  at("strict").replaceChildren(...rows);
  at("strict-refusals").hidden = !rows.length;
}

// Accepted events whose device states no time that can be true.
function drawDated(dated) {
  const rows = Object.entries(dated ?? {}).map(([reason, events]) => {
    const item = made("li");
    item.append(made("span", "", reason), made("span", "count", number(events)));
    return item;
  });
  at("dated").replaceChildren(...rows);
  at("dated-counts").hidden = !rows.length;
}

function drawBars(place, name, bars) {
  const most = Math.max(1, ...bars.map((bar) => bar.accepted + bar.rejected));
  place.replaceChildren(...bars.map((bar) => barOf(name, bar, most)));
  if (!bars.length) place.append(made("li", "none", "none yet"));
}

function barOf(name, { value, label, accepted, rejected }, most) {
  const item = made("li");
  const button = made("button", "bar");
  const isChosen = filters.elements[name].value === value;
  button.type = "button";
  button.setAttribute("aria-pressed", String(isChosen));
  if (name === "category") button.dataset.kind = kindNamed(value);
  button.append(made("span", "label", label));
  if (rejected) button.append(made("span", "bad", `${number(rejected)} rejected`));
  button.append(made("span", "count", number(accepted + rejected)));
  const scale = made("progress");
  scale.max = most;
  scale.value = accepted + rejected;
  scale.setAttribute("aria-hidden", "true");
  button.append(scale);
  button.addEventListener("click", () => choose({ [name]: isChosen ? "" : value }));
  item.append(button);
  return item;
}

function drawRefusals(refused) {
  const rows = Object.entries(refused).map(([status, requests]) => {
    const item = made("li");
    item.append(made("b", "", status), made("span", "", REFUSALS[status] ?? ""), made("span", "count", number(requests)));
    return item;
  });
  at("refused").replaceChildren(...rows);
  at("refused-counts").hidden = !rows.length;
}

function offer(select, choices) {
  const known = new Set(Array.from(select.options, (option) => option.value));
  for (const { value, label } of choices) {
    if (known.has(value)) continue;
    const option = made("option", "", label);
    option.value = value;
    select.append(option);
  }
}

// -- filters ---------------------------------------------------------------------------------------------------------

function asked() {
  const chosen = new URLSearchParams();
  for (const name of ["status", "game_key", "category"]) {
    if (filters.elements[name].value) chosen.set(name, filters.elements[name].value);
  }
  return chosen;
}

const isFiltered = () => asked().size > 0;

function choose(values) {
  for (const [name, value] of Object.entries(values)) {
    if (name !== "status") offer(filters.elements[name], value ? [{ value, label: value }] : []);
    filters.elements[name].value = value;
  }
  filtered();
}

function filtered() {
  history.replaceState(null, "", isFiltered() ? `#${asked()}` : location.pathname);
  at("clear").hidden = !isFiltered();
  if (state.counts) drawCounts();
  listen();
}

// -- talking to the sandbox ------------------------------------------------------------------------------------------

function listen() {
  state.source?.close();
  forget();
  const wanted = asked();
  wanted.set("limit", String(RECENT));
  const source = new EventSource(`live?${wanted}`);
  state.source = source;
  source.onopen = () => {
    forget();
    connection("live");
    summarise();
    draw();
  };
  source.onerror = () => {
    connection("connecting");
    if (source.readyState === EventSource.CLOSED) setTimeout(() => source === state.source && listen(), 2000);
  };
  source.onmessage = (message) => arrived(JSON.parse(message.data));
  source.addEventListener("refused", (message) => refused(JSON.parse(message.data)));
  source.addEventListener("missed", (message) => missed(JSON.parse(message.data).events));
  source.addEventListener("reset", () => { forget(); summarise(); draw(); });
  source.addEventListener("counts", (message) => {
    state.counts = JSON.parse(message.data);
    state.titles = Object.fromEntries(Object.entries(state.counts.games).map(([key, game]) => [key, game.title]));
    drawCounts();
  });
}

function forget() {
  state.waiting = [];
  state.fresh = 0;
  state.missed = 0;
  missed(0);
  state.openedAt = performance.now();
  list.replaceChildren();
  at("refused-requests").replaceChildren();
  at("refusals").hidden = true;
}

const WORDS = { live: "Live", connecting: "Reconnecting", lost: "No connection" };

function connection(now) {
  clearTimeout(state.lostTimer);
  if (now === "connecting") state.lostTimer = setTimeout(() => connection("lost"), LOST_MS);
  at("connection").dataset.state = now;
  at("connection").textContent = WORDS[now];
  at("connection").title = now === "lost" ? "A sandbox that was started again has a new console_url in its ready.json." : "";
}

async function summarise() {
  try {
    const answer = await fetch("summary");
    if (!answer.ok) return;
    state.summary = await answer.json();
    drawTotals();
  } catch {
    // The stream says that the connection is gone; this is only asked again.
  }
}

filters.addEventListener("change", filtered);
filters.addEventListener("submit", (event) => event.preventDefault());
at("clear").addEventListener("click", () => choose({ status: "", game_key: "", category: "" }));
at("pause").addEventListener("click", () => { state.isPaused = !state.isPaused; draw(); });
setInterval(() => { if (!document.hidden) summarise(); }, SUMMARY_MS);
choose(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
