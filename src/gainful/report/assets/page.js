"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const state = { measure: data.measure, centre: data.centre, x: "log", y: "log", step: false, bands: data.bands, seeds: false };
  const NAMES = Object.assign({ reward: "reward" }, data.measures);
  let printing = false;

  // ------------------------------------------------------------------ helpers

  const dark = () => !printing && root.dataset.theme === "dark";
  const hues = data.palette.light.length;
  const colour = (i) => (dark() ? data.palette.dark : data.palette.light)[i % hues];
  const pattern = (i) => data.palette.dashes[Math.floor(i / hues) % data.palette.dashes.length];
  const dash = (i) => pattern(i).map((length) => 2 * length + "px").join(",") || "solid";
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  // plotly interprets a few tags in texts; escaped, names are shown as they are
  const text = (s) => s.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const short = (s) => (s.length > 42 ? s.slice(0, 40) + "…" : s);

  function floats(base64) {
    const raw = atob(base64), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new Float32Array(bytes.buffer);
  }

  function faded(hex, alpha) {
    const n = parseInt(hex.slice(1), 16);
    return `rgba(${n >> 16},${(n >> 8) & 255},${n & 255},${alpha})`;
  }

  function number(x) {
    if (x === null || !isFinite(x)) return "unknown";
    const size = Math.abs(x);
    if (size !== 0 && (size < 1e-3 || size >= 1e9)) return x.toExponential(2);
    return x.toLocaleString("en", size >= 100 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 3 });
  }

  function axis(title, kind, more) {
    return Object.assign({
      title: { text: title, standoff: 8, font: { size: 13 } }, type: kind, gridcolor: css("--line"), zeroline: false,
      linecolor: css("--soft"), showline: true, ticks: "outside", ticklen: 4, tickcolor: css("--soft"),
      exponentformat: "power", automargin: true, minor: { ticks: "" },
    }, kind === "log" ? {} : { tickformat: title.endsWith("per step") ? "~g" : "~s" }, more || {});
  }

  // on paper the screen's width says nothing: A4 between its margins
  const width = (node) => (!printing ? node.clientWidth : node.closest(".pair") ? 325 : 680);
  const narrow = (node) => printing || width(node) < 640;

  function layout(node, more) {
    const tight = narrow(node);
    return Object.assign(printing ? { width: width(node), autosize: false } : { autosize: true }, {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest", uirevision: "kept",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12.5, color: css("--ink") },
      margin: { l: 56, r: tight ? 8 : 24, t: 12, b: 48 },
      legend: tight
        ? { orientation: "h", x: 0, y: -62 / 250, yanchor: "top", font: { size: 12 } }
        : { x: 1.03, y: 1, yanchor: "top", font: { size: 12.5 }, tracegroupgap: 2 },
      hoverlabel: { bgcolor: css("--paper"), bordercolor: css("--soft"), font: { color: css("--ink"), size: 12.5 }, namelength: 60 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--soft"), activecolor: css("--ink") },
    }, more || {});
  }

  const config = (name) => ({
    responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
    toImageButtonOptions: { format: "svg", filename: name.replace(/[^A-Za-z0-9]+/g, "-") || "chart" },
  });

  function height(node, lines) {
    if (printing) return 265 + 24 * Math.ceil(lines / 3);
    return narrow(node) ? 320 + 22 * lines : Math.max(410, Math.min(720, 90 + 23 * lines));
  }

  // whole powers of ten only, where there are enough of them; else 1, 2 and 5 times those
  const decades = (low, high) => ({ dtick: high / low >= 100 ? Math.ceil(Math.log10(high / low) / 9) : "D2" });

  // ------------------------------------------------------------------ regret

  function unpacked(curve) {
    if (!curve.decoded) {
      const all = floats(curve.statistics), k = data.grids[curve.grid].length, found = {};
      data.columns.forEach((name, i) => { found[name] = all.subarray(i * k, (i + 1) * k); });
      curve.decoded = found;
    }
    return curve.decoded;
  }

  function regret(node, env) {
    const traces = [], lines = [], logX = state.x === "log", centre = data.centres[state.centre];
    // one measure for all agents: the chosen one, or the next that is known for each of them
    const drawable = env.agents.filter((agent) => Object.keys(agent.curves).length), order = Object.keys(data.measures);
    const measure = order.slice(order.indexOf(state.measure)).find((name) => drawable.every((agent) => agent.curves[name])) || "reward";
    const known = measure !== "reward";
    const logY = known && state.y === "log", perStep = !known || state.step;
    let least = Infinity, most = 0, first = Infinity, last = 0, hidden = false;
    for (const agent of drawable) {
      const curve = agent.curves[measure];
      if (!curve) continue;
      const grid = data.grids[curve.grid], found = unpacked(curve), tint = colour(agent.index);
      const shown = (y, i) => (perStep ? y / grid[i] : y);
      const x = [], y = [], band = [], rest = [];
      let lowest = Infinity;
      for (let i = 0; i < grid.length; i++) {
        const v = shown(found[state.centre][i], i);
        if (grid[i] > 0 && v > 0) lowest = Math.min(lowest, v);
      }
      const upX = [], upY = [], downX = [], downY = [];
      for (let i = 0; i < grid.length; i++) {
        if (logX && grid[i] <= 0) continue;
        const v = shown(found[state.centre][i], i), low = shown(found[centre.low][i], i), high = shown(found[centre.high][i], i);
        first = Math.min(first, grid[i]); last = Math.max(last, grid[i]);
        if (logY && v <= 0) hidden = true;
        x.push(grid[i]); y.push(logY && !(v > 0) ? null : v); rest.push([number(low), number(high), number(v), grid[i].toLocaleString("en")]);
        if (v > 0) { least = Math.min(least, v); most = Math.max(most, v); }
        if (isFinite(low) && isFinite(high) && !(logY && !(high > 0))) {
          upX.push(grid[i]); upY.push(high); downX.push(grid[i]); downY.push(logY ? Math.max(low, lowest === Infinity ? high : lowest * 0.5) : low);
          if (logY) most = Math.max(most, high);
        }
      }
      const group = { legendgroup: "a" + agent.index, name: text(short(agent.name)) };
      if (state.bands && upX.length > 1) {
        traces.push(Object.assign({
          type: "scatter", mode: "lines", x: upX.concat(downX.reverse()), y: upY.concat(downY.reverse()), fill: "toself",
          fillcolor: faded(tint, dark() ? 0.2 : 0.13), line: { width: 0 }, hoverinfo: "skip", showlegend: false,
        }, group));
      }
      if (state.seeds && curve.runs) {
        const steps = curve.run_steps.map((i) => grid[i]), values = floats(curve.runs), k = steps.length, sx = [], sy = [];
        for (let r = 0; r < curve.seeds.length; r++) {
          for (let i = 0; i < k; i++) {
            if (logX && steps[i] <= 0) continue;
            const v = perStep ? values[r * k + i] / steps[i] : values[r * k + i];
            sx.push(steps[i]); sy.push(logY && !(v > 0) ? null : v);
            if (logY && v > 0) most = Math.max(most, v);
          }
          sx.push(null); sy.push(null);
        }
        traces.push(Object.assign({
          type: "scatter", mode: "lines", x: sx, y: sy, line: { width: 0.7, color: faded(tint, 0.45), dash: "solid" },
          hoverinfo: "skip", showlegend: false, connectgaps: false,
        }, group));
      }
      lines.push(Object.assign({
        type: "scatter", mode: "lines", x: x, y: y, customdata: rest, line: { color: tint, width: 2.2, dash: dash(agent.index) },
        hovertemplate: "step %{customdata[3]}<br>" + centre.name + " %{customdata[2]}<br>" + centre.band + " %{customdata[0]} … %{customdata[1]}<extra>%{fullData.name}</extra>",
      }, group));
    }
    const title = NAMES[measure] + (perStep ? " per step" : "");
    const rangeY = logY && most > 0 ? { range: [Math.log10(Math.max(least, most * 1e-8)) - 0.1, Math.log10(most) + 0.1] } : {};
    const rangeX = first < Infinity ? { range: logX ? [Math.log10(first), Math.log10(last) + 0.02] : [0, last * 1.01] } : {};
    const note = document.getElementById(node.dataset.note);
    if (note) note.hidden = !hidden;
    return [traces.concat(lines), layout(node, {
      height: height(node, env.agents.length),
      xaxis: axis("steps", state.x, Object.assign(logX ? decades(first, last) : {}, rangeX)),
      yaxis: axis(title, logY ? "log" : "linear", Object.assign(logY && most > 0 ? decades(Math.max(least, most * 1e-8), most) : {}, rangeY)),
      datarevision: JSON.stringify(state), uirevision: state.x + state.y + state.measure + state.step,
      legend: Object.assign(layout(node).legend, { uirevision: "kept" }),
    })];
  }

  // ------------------------------------------------------------------ optimism

  // each value holds until the next one begins
  function stepped(x, y, end) {
    const sx = [], sy = [];
    x.forEach((at, i) => { sx.push(at, i + 1 < x.length ? x[i + 1] : end); sy.push(y[i], y[i]); });
    return [sx, sy];
  }

  function optimism(node, env) {
    const bands = [], lines = [], last = env.horizon, known = env.gain !== null;
    let first = Infinity, least = known ? env.gain : Infinity, most = known ? env.gain : -Infinity;
    for (const agent of env.agents) {
      if (!agent.optimism) continue;
      const all = floats(agent.optimism), k = all.length / 4, at = (i) => Array.from(all.subarray(i * k, (i + 1) * k));
      const step = at(0), gain = at(1), low = at(2), high = at(3), tint = colour(agent.index);
      const group = { legendgroup: "a" + agent.index, name: text(short(agent.name)) };
      first = Math.min(first, step[0]);
      gain.forEach((g) => { least = Math.min(least, g); most = Math.max(most, g); });
      const up = stepped(step, high, last), down = stepped(step, low, last), middle = stepped(step, gain, last);
      bands.push(Object.assign({
        type: "scatter", mode: "lines", x: up[0].concat(down[0].reverse()), y: up[1].concat(down[1].reverse()), fill: "toself",
        fillcolor: faded(tint, 0.18), line: { width: 0 }, hoverinfo: "skip", showlegend: false,
      }, group));
      lines.push(Object.assign({
        type: "scatter", mode: "lines", x: middle[0], y: middle[1], line: { color: tint, width: 1.8, dash: dash(agent.index) },
        customdata: stepped(step, low.map((v, i) => [number(v), number(high[i]), step[i].toLocaleString("en")]), last)[1],
        hovertemplate: "episode from step %{customdata[2]}<br>gain %{y:.4g}<br>bracket %{customdata[0]} … %{customdata[1]}<extra>%{fullData.name}</extra>",
      }, group));
    }
    const log = least > 0 && most > 8 * least, place = known && log ? Math.log10(env.gain) : env.gain;
    return [bands.concat(lines), layout(node, {
      height: height(node, lines.length) - 40, margin: { l: 56, r: 32, t: 12, b: 48 },
      xaxis: axis("step at which the episode begins", "log", Object.assign(decades(first, last), { range: [Math.log10(first), Math.log10(last)] })),
      yaxis: axis("planner's gain", log ? "log" : "linear", log ? decades(least, most) : { tickformat: "~g" }),
      shapes: known ? [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: env.gain, y1: env.gain, line: { color: css("--ink"), width: 1.2, dash: "dot" } }] : [],
      annotations: known ? [{ xref: "paper", x: 1.005, xanchor: "left", y: place, yanchor: "middle", text: "g*", showarrow: false, font: { size: 13, color: css("--ink") } }] : [],
    })];
  }

  // ------------------------------------------------------------------ bonus

  function bonus(node, env) {
    const traces = [];
    let anchor = null, least = Infinity, most = 0, low = Infinity, high = 0;
    for (const agent of env.agents) {
      if (!agent.bonus) continue;
      const all = floats(agent.bonus), k = all.length / 2, n = Array.from(all.subarray(0, k)), b = Array.from(all.subarray(k));
      least = Math.min(least, n[0]); most = Math.max(most, n[k - 1]);
      low = Math.min(low, ...b); high = Math.max(high, ...b);
      const level = Math.max(...b.map((v, i) => v * Math.sqrt(n[i])));
      if (!anchor || level > anchor) anchor = level;
      traces.push({
        type: "scatter", mode: "markers", x: n, y: b, name: text(short(agent.name)), legendgroup: "a" + agent.index, showlegend: true,
        marker: { color: faded(colour(agent.index), 0.75), size: 7, symbol: agent.index >= hues ? "diamond-open" : "circle", line: { width: 0 } },
        hovertemplate: "%{x:,.0f} visits<br>bonus %{y:.3g}<extra>%{fullData.name}</extra>",
      });
    }
    const shapes = [], annotations = [];
    if (most > least) {
      const above = 1.6 * anchor;
      shapes.push({ type: "line", x0: least, x1: most, y0: above / Math.sqrt(least), y1: above / Math.sqrt(most), line: { color: css("--soft"), width: 1, dash: "dot" } });
      const middle = Math.sqrt(least * most);
      annotations.push({ x: Math.log10(middle), y: Math.log10(above / Math.sqrt(middle)), text: "slope −1/2", showarrow: false, xanchor: "left", yanchor: "bottom", font: { size: 12, color: css("--soft") } });
    }
    return [traces, layout(node, {
      height: height(node, traces.length) - 60, shapes: shapes, annotations: annotations,
      xaxis: axis("visits of the pair", "log", decades(least, most)), yaxis: axis("bonus", "log", decades(low, high)),
    })];
  }

  // ------------------------------------------------------------------ the problem and what was learned

  const NS = "http://www.w3.org/2000/svg";
  function svg(kind, attributes, parent, content) {
    const node = document.createElementNS(NS, kind);
    for (const name in attributes) node.setAttribute(name, attributes[name]);
    if (content !== undefined) node.textContent = content;
    if (parent) parent.appendChild(node);
    return node;
  }

  function mixed(low, high, share) {
    const a = parseInt(low.slice(1), 16), b = parseInt(high.slice(1), 16);
    const part = (s) => Math.round(((a >> s) & 255) * (1 - share) + ((b >> s) & 255) * share);
    return `rgb(${part(16)},${part(8)},${part(0)})`;
  }

  function graph(node, env, plan) {
    const d = env.drawing, unit = d.shape === "grid" ? 60 : 84, pad = 58, S = d.states.length;
    const xs = d.positions.map((p) => p[0] * unit), ys = d.positions.map((p) => p[1] * unit);
    const left = Math.min(...xs) - pad, top = Math.min(...ys) - pad;
    const wide = Math.max(...xs) - left + pad, tall = Math.max(...ys) - top + pad;
    const low = Math.min(...plan.values), span = Math.max(...plan.values) - low || 1;
    const visits = plan.visits.map((row) => row.reduce((a, b) => a + b, 0)), total = visits.reduce((a, b) => a + b, 0) || 1;
    const radius = visits.map((n) => 9 + 15 * Math.sqrt(n / total));
    const binding = new Set(plan.binding), paper = css("--low"), full = css("--high");
    const arrows = d.arrows.map(([s, t, control, angle, transitions]) => ({
      s, t, control, angle, actions: transitions.map(([a, p]) => `${d.actions[a]} ${number(p)}`),
      taken: transitions.reduce((taken, [a, p]) => (plan.actions[s] === a ? p : taken), 0),
    }));
    node.replaceChildren();
    const picture = svg("svg", { viewBox: `${left} ${top} ${wide} ${tall}`, role: "img", "aria-label": `Graph of ${S} states` }, node);
    picture.style.maxWidth = wide * 1.3 + "px";
    picture.style.minWidth = Math.min(wide * 0.8, 560) + "px";
    const marks = svg("defs", {}, picture), id = "m" + env.index;
    for (const kind of ["faint", "taken"]) {
      const marker = svg("marker", { id: id + kind, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" }, marks);
      svg("path", { d: "M0 0.8 L7.5 4 L0 7.2 z", fill: kind === "taken" ? css("--ink") : css("--soft") }, marker);
    }
    for (const arrow of arrows.sort((a, b) => a.taken - b.taken)) {
      const { s, t } = arrow, kind = arrow.taken > 0 ? "taken" : "faint";
      let path;
      if (s === t) {
        const r = radius[s];
        const at = (turn, far) => `${xs[s] + far * Math.cos(arrow.angle + turn)} ${ys[s] + far * Math.sin(arrow.angle + turn)}`;
        path = `M${at(-0.45, r)} C${at(-0.55, r + 26)} ${at(0.55, r + 26)} ${at(0.45, r + 2)}`;
      } else {
        const cx = arrow.control[0] * unit, cy = arrow.control[1] * unit;
        const from = Math.hypot(cx - xs[s], cy - ys[s]), to = Math.hypot(cx - xs[t], cy - ys[t]);
        const a = [xs[s] + (cx - xs[s]) / from * radius[s], ys[s] + (cy - ys[s]) / from * radius[s]];
        const b = [xs[t] + (cx - xs[t]) / to * (radius[t] + 2), ys[t] + (cy - ys[t]) / to * (radius[t] + 2)];
        path = `M${a[0]} ${a[1]} Q${cx} ${cy} ${b[0]} ${b[1]}`;
      }
      const line = svg("path", { d: path, class: kind, "marker-end": `url(#${id}${kind})`, "stroke-width": kind === "taken" ? 0.7 + 2.3 * arrow.taken : 1 }, picture);
      svg("title", {}, line, `${d.states[s]} → ${d.states[t]}: ${arrow.actions.join(", ")}`);
    }
    const named = S <= 16 && d.shape !== "grid";
    for (let s = 0; s < S; s++) {
      const share = (plan.values[s] - low) / span;
      const circle = svg("circle", { cx: xs[s], cy: ys[s], r: radius[s], class: "state" + (binding.has(s) ? " binding" : ""), fill: mixed(paper, full, share) }, picture);
      svg("title", {}, circle, `${d.states[s]}: ${visits[s].toLocaleString("en")} visits, v = ${number(plan.values[s])}, plays ${d.actions[plan.actions[s]]}` + (binding.has(s) ? ", the span constraint is binding" : ""));
      const below = d.shape === "circle" ? ys[s] + (ys[s] >= 0 ? 1 : -1) * (radius[s] + 22) : ys[s] + radius[s] + 24;
      if (named && d.states[s] !== String(s)) svg("text", { x: xs[s], y: below, class: "name" }, picture, d.states[s].length > 16 ? d.states[s].slice(0, 15) + "…" : d.states[s]);
      const label = svg("text", { x: xs[s], y: ys[s] + 4 }, picture, String(s));
      label.style.fill = share > 0.55 && !dark() ? "#fff" : dark() && share > 0.6 ? "#0b0d10" : "";
      label.style.pointerEvents = "none";
    }
  }

  function ticks(d) {
    const S = d.states.length, many = Math.ceil(S / 20), named = S <= 8, at = [];
    for (let s = 0; s < S; s += many) at.push(s);
    return { tickvals: at, ticktext: at.map((s) => (named ? text(d.states[s].slice(0, 14)) : String(s))), tickangle: named && S > 4 ? -30 : 0 };
  }

  function visits(node, env) {
    const d = env.drawing, plan = env.plans[env.chosen], S = d.states.length, A = d.actions.length, z = [], names = [];
    for (let a = 0; a < A; a++) {
      z.push(plan.visits.map((row, s) => (d.allowed[s][a] ? Math.log10(1 + row[a]) : null)));
      names.push(plan.visits.map((row, s) => `${text(d.states[s])}, ${text(d.actions[a])}<br>${row[a].toLocaleString("en")} visits`));
    }
    const played = plan.actions.map((a, s) => [s, a]).filter(([s, a]) => a >= 0 && a < A);
    const most = Math.max(1, ...z.flat().filter((v) => v !== null)), powers = [];
    for (let k = 0; k <= most; k += Math.ceil(most / 5)) powers.push(k);
    return [[
      { type: "heatmap", z: z, text: names, hovertemplate: "%{text}<extra></extra>", colorscale: [[0, css("--low")], [1, css("--high")]], xgap: 2, ygap: 2, zmin: 0, zmax: most,
        colorbar: { thickness: 10, outlinewidth: 0, len: 1, tickvals: powers, ticktext: powers.map((k) => (k === 0 ? "0" : k === 1 ? "10" : `10<sup>${k}</sup>`)) } },
      { type: "scatter", mode: "markers", x: played.map((p) => p[0]), y: played.map((p) => p[1]), hoverinfo: "skip", showlegend: false,
        marker: { symbol: "circle", size: S > 30 ? 6 : 10, color: css("--paper"), line: { width: 1.5, color: css("--ink") } } },
    ], layout(node, {
      height: Math.max(190, Math.min(420, 110 + 40 * A)), hovermode: "closest",
      xaxis: axis("", "linear", Object.assign(ticks(d), { showgrid: false, tickformat: "", range: [-0.5, S - 0.5] })),
      yaxis: axis("", "linear", { tickvals: d.actions.map((_, a) => a), ticktext: d.actions.map((a) => text(a.slice(0, 18))), showgrid: false, tickformat: "", range: [A - 0.5, -0.5] }),
    })];
  }

  function values(node, env) {
    const d = env.drawing, plan = env.plans[env.chosen], v = plan.values, low = Math.min(...v), binding = new Set(plan.binding);
    const lines = [], notes = [];
    const level = (y, words) => {
      lines.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { color: css("--soft"), width: 1, dash: "dot" } });
      notes.push({ xref: "paper", x: 0, xanchor: "left", y: y, yanchor: "bottom", text: words, showarrow: false, font: { size: 12, color: css("--soft") } });
    };
    if (plan.span !== null) level(low + plan.span, "min v + c");
    const top = Math.max(...v, plan.span !== null ? low + plan.span : -Infinity), room = 0.12 * (top - low || 1);
    return [[{
      type: "scatter", mode: d.shape === "chain" ? "lines+markers" : "markers", x: v.map((_, s) => s), y: v, line: { color: faded(colour(0), 0.5), width: 1.2 },
      marker: { size: 9, color: v.map((_, s) => (binding.has(s) ? colour(1) : colour(0))), symbol: v.map((_, s) => (binding.has(s) ? "diamond" : "circle")) },
      text: v.map((x, s) => `${text(d.states[s])}<br>v = ${number(x)}` + (binding.has(s) ? "<br>the span constraint is binding" : "")), hovertemplate: "%{text}<extra></extra>", showlegend: false,
    }], layout(node, {
      height: Math.max(190, Math.min(420, 110 + 40 * d.actions.length), 260), shapes: lines, annotations: notes,
      xaxis: axis("", "linear", Object.assign(ticks(d), { showgrid: false, tickformat: "", range: [-0.5, v.length - 0.5] })),
      yaxis: axis("v", "linear", { tickformat: "~g", range: [low - room, top + 1.6 * room] }),
    })];
  }

  function draw_problem(env) {
    const holder = document.getElementById("graph-" + env.index);
    if (holder && env.drawing.positions.length) graph(holder, env, env.plans[env.chosen]);
  }

  // ------------------------------------------------------------------ drawing what is in view

  const makers = { regret, optimism, bonus, visits, values };
  const charts = Array.from(document.querySelectorAll(".chart"));
  const drawn = new Set();

  function draw(node) {
    const env = data.environments[Number(node.dataset.env)], made = makers[node.dataset.chart](node, env);
    const done = Plotly.react(node, made[0], made[1], config(env.label + " " + node.dataset.chart));
    if (!drawn.has(node)) {
      drawn.add(node);
      node.on("plotly_restyle", () => synchronise(node));
    }
    node.dataset.drawn = node.dataset.chart;
    return done;
  }

  const redraw = (kinds) => { for (const node of drawn) if (!kinds || kinds.includes(node.dataset.chart)) draw(node); };
  const draw_all = () => { charts.forEach(draw); data.environments.forEach((env) => { if (env.chosen !== null) draw_problem(env); }); };

  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      watch.unobserve(entry.target);
      if (!drawn.has(entry.target)) draw(entry.target);
    }
  }, { rootMargin: "800px 0px" });
  charts.forEach((node) => watch.observe(node));

  // ------------------------------------------------------------------ switches

  document.querySelectorAll(".tools button").forEach((button) => {
    button.addEventListener("click", () => {
      const { key, value } = button.dataset;
      if (value === undefined) {
        state[key] = !state[key];
        button.setAttribute("aria-pressed", String(state[key]));
      } else {
        state[key] = value;
        button.parentNode.querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", String(b === button)));
      }
      document.querySelectorAll(".centre-caption").forEach((node) => { node.textContent = data.centres[state.centre].caption; });
      redraw(["regret"]);
    });
  });

  document.querySelectorAll("select.plan").forEach((select) => {
    const env = data.environments[Number(select.dataset.env)];
    const choose = () => {
      env.chosen = select.value;
      draw_problem(env);
      const story = document.getElementById("story-" + env.index);
      if (story) story.textContent = env.plans[env.chosen].story;
    };
    select.addEventListener("change", () => { choose(); for (const n of drawn) if (n.dataset.env === select.dataset.env && (n.dataset.chart === "visits" || n.dataset.chart === "values")) draw(n); });
    choose();
  });

  // the key beside an agent's name does what a click in the legend does
  function synchronise(node) {
    if (node.dataset.chart !== "regret") return;
    const shown = {};
    node.data.forEach((trace) => { if (trace.showlegend !== false) shown[trace.legendgroup] = trace.visible !== "legendonly"; });
    document.querySelectorAll(`.key[data-env="${node.dataset.env}"]`).forEach((key) => key.setAttribute("aria-pressed", String(shown["a" + key.dataset.agent] !== false)));
  }

  document.querySelectorAll(".key").forEach((key) => {
    key.addEventListener("click", () => {
      const node = charts.find((c) => c.dataset.chart === "regret" && c.dataset.env === key.dataset.env);
      if (!node) return;
      if (!drawn.has(node)) draw(node);
      const wanted = key.getAttribute("aria-pressed") !== "true", which = [];
      node.data.forEach((trace, i) => { if (trace.legendgroup === "a" + key.dataset.agent) which.push(i); });
      Plotly.restyle(node, { visible: wanted ? true : "legendonly" }, which);
    });
  });

  function paint_keys() {
    document.querySelectorAll(".key line").forEach((line) => {
      const i = Number(line.dataset.agent);
      line.setAttribute("stroke", colour(i));
      line.setAttribute("stroke-dasharray", pattern(i).join(" "));
    });
  }

  // ------------------------------------------------------------------ tables

  document.querySelectorAll("table.sortable").forEach((table) => {
    const body = table.tBodies[0], heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending", sign = down ? -1 : 1;
        heads.forEach((h) => h.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => row.cells[column].dataset.value;
        const rows = Array.from(body.rows).sort((a, b) => {
          const x = key(a), y = key(b);
          if (x === "" || y === "") return (x === "") - (y === "");
          return sign * (head.classList.contains("word") ? x.localeCompare(y, "en", { numeric: true }) : Number(x) - Number(y));
        });
        rows.forEach((row) => body.appendChild(row));
      });
    });
  });

  // ------------------------------------------------------------------ light, dark, paper

  const theme = document.getElementById("theme"), prefers = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("gainful-theme"); } catch (error) { chosen = null; }

  function paint() {
    const now = printing ? "light" : chosen || (prefers.matches ? "dark" : "light");
    root.dataset.theme = now;
    theme.textContent = now === "dark" ? "Light" : "Dark";
    theme.setAttribute("aria-label", now === "dark" ? "Use light colours" : "Use dark colours");
    paint_keys();
    redraw();
    data.environments.forEach((env) => { if (env.chosen !== null) draw_problem(env); });
  }

  theme.addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("gainful-theme", chosen); } catch (error) { /* a private window: for this page only */ }
    paint();
  });
  prefers.addEventListener("change", paint);

  function paper(on) {
    if (printing === on) return;
    printing = on;
    paint();
    if (on) draw_all();
  }
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));
  matchMedia("print").addEventListener("change", (event) => paper(event.matches));
  paint();

  let before = innerWidth, timer = 0;
  addEventListener("resize", () => {
    if (innerWidth === before || printing) return;
    before = innerWidth;
    clearTimeout(timer);
    timer = setTimeout(() => redraw(), 150);
  });
  root.dataset.ready = "yes";
})();
