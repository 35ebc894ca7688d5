"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const REFRESH_MS = 2000, MAX_STATES = 200, SHOWN_OUTCOMES = 10;
  const lead = byId("lead").textContent;
  let key = "", chosen = "", shown = "", timer = 0, round = 0;

  const element = (name, text, kind) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const shape = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const whole = (x) => x.toLocaleString("en");
  const digits = (x) => {
    if (x === null || x === undefined) return "–";
    const tiny = x !== 0 && Math.abs(x) < 1e-6; // written as 7.1e-14
    return tiny ? String(Number(x.toPrecision(2))) : Number(x.toPrecision(5)).toLocaleString("en", { maximumSignificantDigits: 5 });
  };
  const bracket = (low, high) => {
    if (low === null || low === undefined) return "–";
    const a = digits(low), b = digits(high);
    return a === b ? a : `${a} … ${b}`;
  };
  const showTrouble = (text) => {
    byId("trouble").hidden = !text;
    byId("trouble").textContent = text;
  };

  const hide = () => {  // the details of an agent that is no longer selected
    if (shown === chosen) return;
    shown = "";
    byId("agent").hidden = true;
  };

  async function ask(path) {
    const answer = await fetch(path, { headers: { Authorization: `Bearer ${key}` }, cache: "no-store", credentials: "omit" });
    const found = await answer.json();
    if (!answer.ok) throw new Error(`${found.what}. ${found.next}`);
    return found;
  }

  function list(agents) {
    const rows = agents.map((agent) => {
      const row = element("tr"), cell = element("td", undefined, "word"), button = element("button", agent.id);
      button.type = "button";
      button.addEventListener("click", () => { chosen = agent.id; hide(); show(); });
      cell.append(button);
      row.setAttribute("aria-current", String(agent.id === chosen));
      row.append(cell, element("td", agent.name, "word name"), element("td", agent.open ? agent.agent : agent.trouble || "opening …", agent.trouble ? "word trouble" : "word kind"),
        element("td", whole(agent.observations)), element("td", whole(agent.episodes)),
        element("td", bracket(agent.gain_low, agent.gain_high) + (agent.objective === "cost" && agent.gain_low !== null ? " (cost)" : "")));
      return row;
    });
    byId("list").replaceChildren(...rows);
  }

  const beyondRewards = (agent) => {  // an optimistic gain outside of what rewards can be says nothing
    const most = agent.settings.reward_max, costs = agent.objective === "cost";
    return agent.gain !== null && typeof most === "number" && (costs ? agent.gain.estimate < -most : agent.gain.estimate > most);
  };

  function tiles(agent, earned) {
    const sure = agent.confidence, bound = agent.regret_bound, costs = agent.objective === "cost";
    const share = (n, of) => `${whole(n)} of ${whole(of)}`;
    const recent = rolling(earned);
    const lately = recent.length ? recent[recent.length - 1][1] : null;
    const beyond = `${costs ? "below the least cost" : "above the largest reward"}: not informative yet`;
    const hope = "what it cannot rule out yet: a hope, not a promise";
    const found = [
      [`Average ${agent.objective} lately`, digits(lately), lately === null ? "no outcomes yet" : `over the last ${whole(windowOf(earned) * earned.length)} steps`],
      [`Average ${agent.objective} so far`, digits(costs ? agent.mean_cost : agent.mean_reward), `over ${whole(agent.observations)} steps`],
      [costs ? "Optimistic average cost" : "Optimistic gain", agent.gain ? digits(agent.gain.estimate) : "–", !agent.gain ? "no plan yet" : beyondRewards(agent) ? beyond : hope],
      ["Observations", whole(agent.observations), `${whole(agent.episodes)} ${agent.episodes === 1 ? "plan" : "plans"}, ${whole(agent.pending)} waiting for outcomes`],
      ["Pairs visited", share(sure.pairs_visited, sure.pairs),
        sure.pairs_vacuous === null ? `${share(sure.states_visited, agent.tables.n_states)} ${agent.settings.partition ? "cells" : "states"}` : `${whole(sure.pairs_vacuous)} without informative data`],
      ["Bound on the regret so far", digits(bound.value),
        bound.value === null ? bound.reason : bound.value < bound.trivial ? `with probability ${digits(bound.probability)}` : `not informative yet: the regret is never above ${digits(bound.trivial)}`],
    ];
    byId("tiles").replaceChildren(...found.map(([name, value, note]) => {
      const tile = element("div");
      tile.append(element("dt", name), element("dd", value), element("dd", note));
      return tile;
    }));
  }

  // ------------------------------------------------------------------ the average over time

  const windowOf = (earned) => Math.max(1, Math.ceil(earned.average.length / 12));

  function rolling(earned) {  // [step, average of the last twelfth of the time] after each block
    const n = windowOf(earned), found = [];
    for (let end = n; end <= earned.average.length; end++) {
      const sum = earned.average.slice(end - n, end).reduce((a, b) => a + b, 0);  // anew: a running sum would drift from 0
      found.push([earned.before + end * earned.length, sum / n]);
    }
    return found;
  }

  function ticksOf(low, high, about) {  // round numbers from low to high
    const rough = (high - low) / about, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= rough);
    const found = [];
    for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-12) + 1e-300; i++) found.push(i * step);
    return found;
  }

  const inRange = (x, range) => Math.min(Math.max(x, range[0]), range[1]);

  function rangeOf(averages, agent, hopes) {  // the averages and the latest plan decide; early plans may be far away
    const latest = beyondRewards(agent) || !hopes.length ? [] : [hopes[hopes.length - 1][1]];
    const values = averages.map((p) => p[1]).concat(latest);
    let low = Math.min(...values), high = Math.max(...values);
    const room = high - low < 1e-9 * Math.max(1, Math.abs(high)) ? Math.max(0.5, Math.abs(high) / 10) : (high - low) / 8;
    return [low - room, high + room];
  }

  function legend(W, narrow, lately, hope, agent) {  // beside the axis title, or below it on a phone
    const made = shape("text", narrow ? { x: 0, y: 30 } : { x: W - 12, y: 12, "text-anchor": "end" });
    made.append(shape("tspan", { class: "of-curve" }, `— ${agent.objective === "cost" ? "paid" : "earned"} lately ${digits(lately)}`));
    if (hope !== null) made.append(shape("tspan", { class: "of-mean", dx: 14 }, `-- optimistic ${digits(hope)}${beyondRewards(agent) ? ", beyond the axis" : ""}`));
    return made;
  }

  function chart(episodes, agent, earned) {
    const svg = byId("gain"), W = Math.max(300, Math.round(svg.getBoundingClientRect().width)), H = W < 600 ? 260 : 300;
    const narrow = W < 600, left = 64, right = 12, top = narrow ? 44 : 28, bottom = 44;
    svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    const averages = rolling(earned);
    const hopes = episodes.step.map((step, i) => [step, episodes.gain[i]]).filter((p) => p[1] !== null);
    if (!averages.length) {
      svg.setAttribute("viewBox", `0 0 ${W} 28`);
      svg.replaceChildren(shape("text", { x: 0, y: 16 }, "No outcomes yet: the curve begins with the first ones."));
      return;
    }
    const range = rangeOf(averages, agent, hopes), last = Math.max(agent.observations, 2);
    const x = (step) => left + (W - left - right) * step / last;
    const y = (value) => top + (H - top - bottom) * (range[1] - inRange(value, range)) / (range[1] - range[0]);
    const parts = [];
    for (const value of ticksOf(range[0], range[1], 5)) {
      parts.push(shape("line", { class: "grid", x1: left, x2: W - right, y1: y(value), y2: y(value) }));
      parts.push(shape("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, digits(value)));
    }
    for (const step of ticksOf(0, last, W < 600 ? 3 : 6)) {
      parts.push(shape("text", { x: x(step), y: H - 24, "text-anchor": step > 0.95 * last ? "end" : "middle" }, whole(step)));
    }
    parts.push(shape("text", { class: "title", x: (left + W - right) / 2, y: H - 4, "text-anchor": "middle" }, "observations"));
    parts.push(shape("text", { class: "title", x: 0, y: 12 }, `${agent.objective} per step`));
    const path = (points) => points.map((p, i) => `${i ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[1]).toFixed(1)}`).join("");
    if (hopes.length) {
      const stairs = hopes.map((p, i) => `${i ? `H${x(p[0]).toFixed(1)}V` : `M${x(p[0]).toFixed(1)} `}${y(p[1]).toFixed(1)}`).join("");
      parts.push(shape("path", { class: "mean", d: `${stairs}H${x(last).toFixed(1)}` }));
    }
    parts.push(shape("path", { class: "curve", d: path(averages.length > 1 ? averages : [[earned.before, averages[0][1]], averages[0]]) }));
    parts.push(legend(W, narrow, averages[averages.length - 1][1], hopes.length ? hopes[hopes.length - 1][1] : null, agent));
    svg.replaceChildren(...parts);
  }

  // ------------------------------------------------------------------ tables

  const named = (labels, i) => (labels ? labels[i] : String(i));
  const place = (state) => (Array.isArray(state) ? state.map(digits).join(", ") : String(state));
  const row = (cells) => {
    const made = element("tr");
    made.append(...cells);
    return made;
  };
  function cellName(cells, i) {  // the interval of a cell on one axis; on several its number
    if (!cells || !cells.bins || cells.bins.length !== 1) return String(i);
    const at = (k) => Number((cells.low[0] + (cells.high[0] - cells.low[0]) * k / cells.bins[0]).toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });
    return `${at(i)} … ${at(i + 1)}`;
  }
  const stateName = (tables, i, cells) => (tables.state_labels ? tables.state_labels[i] : cellName(cells, tables.first + i));

  function decisions(tables, cells) {
    byId("heads").hidden = byId("states").hidden = !tables.policy;
    byId("heads").replaceChildren(row([element("th", cells ? "cell" : "state", "word"), element("th", "action", "word"), element("th", cells ? "visits of the cell" : "visits of the state"), element("th", "of this action")]));
    byId("states").replaceChildren(...tables.visits.map((visits, i) => {
      const chosen = tables.policy ? tables.policy[i] : null, total = visits.reduce((a, b) => a + b, 0);
      return row([element("td", stateName(tables, i, cells), "word"), element("td", chosen === null ? "–" : named(tables.action_labels, chosen), "word"),
        element("td", whole(total)), element("td", chosen === null || !total ? "–" : `${Math.round(100 * visits[chosen] / total)} %`)]);
    }));
    if (!tables.policy) byId("about").textContent = "There is no plan yet: the first one is made when an action is asked for.";
    else byId("about").textContent = tables.visits.length < tables.n_states ? `The present plan; the first ${whole(tables.visits.length)} of ${whole(tables.n_states)} ${cells ? "cells" : "states"}.` : `The present plan in every ${cells ? "cell" : "state"}.`;
  }

  function outcomes(earned, agent) {
    byId("outcome-heads").replaceChildren(row([element("th", "step"), element("th", "state", "word"), element("th", "action", "word"), element("th", agent.objective), element("th", "next state", "word")]));
    byId("outcomes").replaceChildren(...[...earned.outcomes].reverse().slice(0, SHOWN_OUTCOMES).map((one) => row([element("td", whole(one.step)), element("td", place(one.state), "word"),
      element("td", String(one.action), "word"), element("td", digits(one.amount)), element("td", place(one.next_state), "word")])));
    const count = agent.pending ? whole(agent.pending) : "No";
    const waiting = `${count} ${agent.pending > 1 ? "decisions are" : "decision is"} waiting for an outcome.`;
    byId("waiting").textContent = earned.outcomes.length ? `The newest first. ${waiting}` : `None yet. ${waiting}`;
    byId("outcome-heads").hidden = !earned.outcomes.length;
  }

  function pairs(tables, cells) {
    const A = tables.n_actions, most = Math.min(A, 12), some = [...Array(most).keys()];
    const has = (i, a) => !tables.allowed || tables.allowed[i][a];
    const action = (a) => (tables.action_labels ? tables.action_labels[a] : `action ${a}`);
    const heads = [element("th", cells ? "cell" : "state", "word"), ...some.map((a) => element("th", `visits, ${action(a)}`))];
    if (tables.bonus) heads.push(...some.map((a) => element("th", `bonus, ${action(a)}`)));
    byId("pair-heads").replaceChildren(row(heads));
    byId("pairs").replaceChildren(...tables.visits.map((visits, i) => {
      const chosen = tables.policy ? tables.policy[i] : null;
      const found = [element("td", stateName(tables, i, cells), "word"), ...some.map((a) => element("td", has(i, a) ? whole(visits[a]) : "", a === chosen ? "chosen" : ""))];
      if (tables.bonus) found.push(...some.map((a) => element("td", has(i, a) ? digits(tables.bonus[i][a]) : "")));
      return row(found);
    }));
  }

  async function show() {
    clearTimeout(timer);
    const mine = ++round;
    let listed = false;
    try {
      const { agents } = await ask("/agents");
      if (mine !== round) return;
      if (!agents.some((agent) => agent.id === chosen)) chosen = agents.length ? agents[0].id : "";
      list(agents);
      listed = true;
      hide();
      byId("agents").hidden = agents.length === 1;  // then its details are all there is to see
      byId("form").hidden = true;
      byId("leave").hidden = false;
      byId("lead").textContent = agents.length ? `${whole(agents.length)} ${agents.length === 1 ? "agent" : "agents"}, refreshed every ${REFRESH_MS / 1000} seconds.` : "There are no agents yet: POST /agents creates one.";
      if (chosen) {
        const path = `/agents/${encodeURIComponent(chosen)}`;
        const [agent, episodes, earned] = await Promise.all([ask(`${path}?states=${MAX_STATES}`), ask(`${path}/episodes`), ask(`${path}/earnings`)]);
        if (mine !== round) return;
        byId("title").textContent = agent.name || agent.id;
        byId("kind").textContent = `${agent.agent} with ${whole(agent.tables.n_states)} ${agent.settings.partition ? "cells" : "states"} and ${whole(agent.tables.n_actions)} actions, ${agent.created ? `created ${agent.created.slice(0, 16).replace("T", " ")} UTC` : "added by hand"}`;
        byId("agent").hidden = false;
        shown = chosen;
        byId("alerts").replaceChildren(...agent.alerts.map((text) => element("li", text)));
        byId("over").textContent = `Average ${agent.objective} over time`;
        byId("what").textContent = `Solid: the average ${agent.objective} per step over the last twelfth of the time. Dashed: the optimistic ${agent.objective === "cost" ? "average cost" : "gain"} of each plan, the best that the data do not rule out; where it leaves the axis it runs along the edge. ${agent.objective === "cost" ? "It comes up to what has to be paid" : "It comes down to what can be earned"} as the agent learns.`;
        byId("what").hidden = !earned.average.length;
        tiles(agent, earned);
        chart(episodes, agent, earned);
        decisions(agent.tables, agent.settings.partition);
        outcomes(earned, agent);
        pairs(agent.tables, agent.settings.partition);
        byId("promise").textContent = agent.guarantee.holds ? `Guarantee: ${agent.guarantee.text}` : agent.guarantee.text.replace(/^no /, "No ");
        const notes = agent.changes.map((c) => `${c.name} was changed from ${c.old ?? "none"} to ${c.new} after ${whole(c.t)} observations${c.reason ? `: ${c.reason}` : ""}`);
        byId("notes").replaceChildren(...notes.concat(agent.notices, agent.trouble ? [agent.trouble] : []).map((text) => element("li", text)));
      }
      byId("agent").hidden = !chosen;
      byId("foot").textContent = `As of ${new Date().toLocaleTimeString("en-GB")}. This page contacts only its own service.`;
      showTrouble("");
    } catch (error) {
      if (mine !== round) return;
      if (!(error instanceof TypeError)) {  // rejected: what is shown does not belong to this request
        shown = "";
        byId("agent").hidden = true;
        if (!listed) leave();
      }
      showTrouble(error instanceof TypeError ? "The service does not respond; trying again." : error.message);
    }
    if (mine === round) {
      document.documentElement.dataset.round = String(mine);
      timer = setTimeout(show, REFRESH_MS);
    }
  }

  function leave() {  // ask for a key again
    for (const id of ["agents", "agent", "leave"]) byId(id).hidden = true;
    byId("form").hidden = false;
    byId("key").focus();
  }

  byId("leave").addEventListener("click", () => {
    clearTimeout(timer);
    round++;
    key = chosen = shown = "";
    byId("lead").textContent = lead;
    byId("foot").textContent = "";
    showTrouble("");
    leave();
  });
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    key = byId("key").value.trim();
    if (!/^[!-~]+$/.test(key)) { showTrouble("A key consists of printable ASCII characters without spaces."); return; }
    byId("key").value = "";
    show();
  });
  document.documentElement.dataset.ready = "yes";
})();
