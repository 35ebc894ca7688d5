"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const REFRESH_MS = 2000, MAX_STATES = 200;
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
  const digits = (x) => (x === null || x === undefined ? "–" : Number(x.toPrecision(5)).toLocaleString("en", { maximumSignificantDigits: 5 }));
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
      row.append(cell, element("td", agent.name, "word"), element("td", agent.open ? agent.agent : agent.trouble || "opening …", agent.trouble ? "word trouble" : "word"),
        element("td", whole(agent.observations)), element("td", whole(agent.episodes)),
        element("td", bracket(agent.gain_low, agent.gain_high) + (agent.objective === "cost" && agent.gain_low !== null ? " (cost)" : "")));
      return row;
    });
    byId("list").replaceChildren(...rows);
  }

  function tiles(agent) {
    const sure = agent.confidence, bound = agent.regret_bound, most = agent.settings.reward_max;
    const costs = agent.objective === "cost", known = agent.gain && typeof most === "number";
    const hoped = known && (costs ? agent.gain.estimate < -most : agent.gain.estimate > most);
    const beyond = `${costs ? "below the least cost" : "above the largest reward"}: not informative yet`;
    const share = (n, of) => `${whole(n)} of ${whole(of)}`;
    const found = [
      ["Observations", whole(agent.observations), `${whole(agent.pending)} decisions waiting for outcomes`],
      [costs ? "Optimistic average cost" : "Optimistic gain", agent.gain ? digits(agent.gain.estimate) : "–", !agent.gain ? "no plan yet" : hoped ? beyond : `certified ${bracket(agent.gain.low, agent.gain.high)}`],
      [`Mean ${agent.objective} so far`, digits(costs ? agent.mean_cost : agent.mean_reward), `${whole(agent.episodes)} episodes`],
      ["Pairs visited", share(sure.pairs_visited, sure.pairs), `${share(sure.states_visited, agent.tables.n_states)} states`],
      ["Pairs without informative data", sure.pairs_vacuous === null ? "–" : share(sure.pairs_vacuous, sure.pairs),
        sure.bonus_median === null ? "this agent has no bonus" : `bonus ${digits(sure.bonus_least)} to ${digits(sure.bonus_greatest)}, median ${digits(sure.bonus_median)}`],
      ["Bound on the regret so far", digits(bound.value),
        bound.value === null ? bound.reason : bound.value < bound.trivial ? `with probability ${digits(bound.probability)}` : `not informative yet: the regret is never above ${digits(bound.trivial)}`],
    ];
    byId("tiles").replaceChildren(...found.map(([name, value, note]) => {
      const tile = element("div");
      tile.append(element("dt", name), element("dd", value), element("dd", note));
      return tile;
    }));
  }

  const width = () => Math.round(byId("gain").getBoundingClientRect().width);

  function chart(episodes, agent) {
    const svg = byId("gain"), W = Math.max(300, width()), H = 260, left = 60, right = 10, top = 10, bottom = 34;
    svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    const points = episodes.step.map((step, i) => [step, episodes.low[i], episodes.gain[i], episodes.high[i]]).filter((p) => p.every((x) => x !== null));
    if (!points.length) {
      svg.replaceChildren(shape("text", { x: left, y: H / 2 }, "no plan yet"));
      return;
    }
    const last = points[points.length - 1];
    points.push([Math.max(agent.observations, last[0]) + 1, ...last.slice(1)]);
    const mean = agent.objective === "cost" ? agent.mean_cost : agent.mean_reward;
    const values = points.flatMap((p) => p.slice(1)).concat(mean === null ? [] : [mean]);
    let low = Math.min(...values), high = Math.max(...values);
    if (high - low < 1e-9) { low -= 0.5; high += 0.5; }
    const most = Math.log10(points[points.length - 1][0]) || 1;
    const x = (step) => left + (W - left - right) * Math.log10(Math.max(step, 1)) / most;
    const y = (value) => top + (H - top - bottom) * (high - value) / (high - low);
    const parts = [];
    for (let i = 0; i <= 4; i++) {
      const value = low + (high - low) * i / 4;
      parts.push(shape("line", { class: "grid", x1: left, x2: W - right, y1: y(value), y2: y(value) }));
      parts.push(shape("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, String(Number(value.toPrecision(3)))));
    }
    for (let power = 0; power <= most; power++) {
      parts.push(shape("text", { x: x(10 ** power), y: H - 16, "text-anchor": "middle" }, whole(10 ** power)));
    }
    parts.push(shape("text", { x: (left + W) / 2, y: H - 1, "text-anchor": "middle" }, "step"));
    const stairs = (column) => points.map((p, i) => (i ? `H${x(p[0]).toFixed(1)}V${y(p[column]).toFixed(1)}` : `M${x(p[0]).toFixed(1)} ${y(p[column]).toFixed(1)}`)).join("");
    const back = points.map((p, i) => [p, points[i - 1] || p]).reverse().map(([, before]) => `V${y(before[1]).toFixed(1)}H${x(before[0]).toFixed(1)}`).join("");
    parts.push(shape("path", { class: "band", d: `${stairs(3)}${back}Z` }), shape("path", { class: "curve", d: stairs(2) }));
    if (mean !== null) {
      parts.push(shape("line", { class: "mean", x1: left, x2: W - right, y1: y(mean), y2: y(mean) }));
      parts.push(shape("text", { class: "of-mean", x: W - right, y: y(mean) - 5, "text-anchor": "end" }, `mean ${agent.objective} ${digits(mean)}`));
    }
    svg.replaceChildren(...parts);
  }

  const named = (labels, i) => (labels ? labels[i] : String(i));

  function states(tables) {
    const A = tables.n_actions, most = Math.min(A, 12), some = [...Array(most).keys()];
    const has = (i, a) => !tables.allowed || tables.allowed[i][a];
    const action = (a) => (tables.action_labels ? tables.action_labels[a] : `action ${a}`);
    const heads = element("tr");
    heads.append(element("th", "state", "word"), element("th", "greedy action", tables.action_labels ? "word" : ""));
    for (const a of some) heads.append(element("th", `visits, ${action(a)}`));
    if (tables.bonus) for (const a of some) heads.append(element("th", `bonus, ${action(a)}`));
    byId("heads").replaceChildren(heads);
    byId("states").replaceChildren(...tables.visits.map((visits, i) => {
      const row = element("tr"), chosen = tables.policy ? tables.policy[i] : null;
      const state = tables.state_labels ? tables.state_labels[i] : String(tables.first + i);
      row.append(element("td", state, "word"), element("td", chosen === null ? "–" : named(tables.action_labels, chosen), tables.action_labels ? "word" : ""));
      for (const a of some) row.append(element("td", has(i, a) ? whole(visits[a]) : "", a === chosen ? "chosen" : ""));
      if (tables.bonus) for (const a of some) row.append(element("td", has(i, a) ? digits(tables.bonus[i][a]) : ""));
      return row;
    }));
    const rest = [];
    if (tables.visits.length < tables.n_states) rest.push(`the first ${whole(tables.visits.length)} of ${whole(tables.n_states)} states`);
    if (most < A) rest.push(`the first ${most} of ${A} actions`);
    if (tables.allowed) rest.push("only the actions that a state has");
    byId("about").textContent = `The visits of the greedy action are highlighted. ${rest.length ? `Shown: ${rest.join(", ")}.` : ""}`;
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
      byId("agents").hidden = false;
      byId("lead").textContent = agents.length ? `${whole(agents.length)} ${agents.length === 1 ? "agent" : "agents"}, refreshed every ${REFRESH_MS / 1000} seconds.` : "There are no agents yet: POST /agents creates one.";
      if (chosen) {
        const path = `/agents/${encodeURIComponent(chosen)}`;
        const [agent, episodes] = await Promise.all([ask(`${path}?states=${MAX_STATES}`), ask(`${path}/episodes`)]);
        if (mine !== round) return;
        byId("title").textContent = agent.name || agent.id;
        byId("kind").textContent = `${agent.agent} with ${whole(agent.tables.n_states)} states and ${whole(agent.tables.n_actions)} actions, ${agent.created ? `created ${agent.created}` : "added by hand"}`;
        byId("agent").hidden = false;
        shown = chosen;
        const gain = agent.objective === "cost" ? "average cost" : "gain";
        byId("over").textContent = `${gain[0].toUpperCase()}${gain.slice(1)} over time`;
        byId("what").textContent = `The optimistic ${gain} of each episode's plan with its certified bracket, and the mean ${agent.objective} so far (dashed). The gap between them is optimism: what the agent cannot yet rule out.`;
        tiles(agent);
        chart(episodes, agent);
        states(agent.tables);
        byId("promise").textContent = agent.guarantee.holds ? `Guarantee: ${agent.guarantee.text}` : agent.guarantee.text;
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
        if (!listed) byId("agents").hidden = true;
      }
      showTrouble(error instanceof TypeError ? "The service does not respond; trying again." : error.message);
    }
    if (mine === round) {
      document.documentElement.dataset.round = String(mine);
      timer = setTimeout(show, REFRESH_MS);
    }
  }

  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    key = byId("key").value.trim();
    if (!/^[!-~]+$/.test(key)) { showTrouble("A key consists of printable ASCII characters without spaces."); return; }
    byId("key").value = "";
    show();
  });
  document.documentElement.dataset.ready = "yes";
})();
