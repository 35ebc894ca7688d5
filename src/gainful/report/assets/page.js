"use strict";
(function () {
  let data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const state = { measure: data.measure, centre: data.centre, x: "log", y: "log", step: false, bands: data.bands, seeds: false };
  const NAMES = Object.assign({ reward: "reward" }, data.measures);
  const hidden = new Map(); // by the name of an environment, the names of agents whose curves are hidden
  let charts = [], observer = null;
  const drawn = new Set();
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
      title: { text: title, standoff: 6, font: { size: 14.5 } }, tickfont: { size: kind === "log" ? 10 : 12 } /* plotly draws powers a quarter larger */, type: kind, gridcolor: css("--line"), zeroline: false,
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

  // a picture has a legend, although the table beside the chart is the legend on the page
  function save_picture(node, name) {
    const size = { width: 960, height: 540 };
    const kept = Object.assign({}, node.layout, size, { autosize: false, showlegend: node.data.some((t) => t.name), paper_bgcolor: css("--paper"), legend: { x: 1.02, y: 1, font: { size: 12.5 } } });
    Plotly.downloadImage({ data: node.data, layout: kept }, Object.assign({ format: "svg", filename: name.replace(/[^A-Za-z0-9]+/g, "-") || "chart" }, size));
  }

  // the buttons by name: among plotly's own is one that offers to send the chart to a server
  const config = (name) => ({
    responsive: true, displaylogo: false, plotlyServerURL: "",
    modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", { name: "picture", title: "Save as a picture (SVG)", icon: Plotly.Icons.camera, click: (node) => save_picture(node, name) }]],
  });

  function height(node, lines) {
    if (printing) return 265 + 24 * Math.ceil(lines / 3);
    return narrow(node) ? 320 + 22 * lines : Math.max(410, Math.min(720, 90 + 23 * lines));
  }

  // whole powers of ten only, where there are enough of them; else 1, 2 and 5 times those, in full
  function decades(low, high, few) {
    if (!(high / low < 100)) return { dtick: Math.ceil(Math.log10(high / low) / 9) };
    const at = [], size = (k) => Math.pow(10, k);
    for (let k = Math.floor(Math.log10(low)) - 1; k <= Math.ceil(Math.log10(high)); k++) (few && high / low > 5 ? [1, 3] : [1, 2, 5]).forEach((m) => at.push(k < 0 ? m / size(-k) : m * size(k)));
    return { tickvals: at, ticktext: at.map((v) => (v >= 1e-4 && v < 1e6 ? v.toLocaleString("en", { maximumFractionDigits: 6 }) : v.toExponential(0).replace("e+", "e").replace("-", "−"))), tickfont: { size: 12 } };
  }

  // ------------------------------------------------------------------ regret

  function unpacked(curve) {
    if (!curve.decoded) {
      const all = floats(curve.statistics), k = data.grids[curve.grid].length, found = {};
      data.columns.forEach((name, i) => { found[name] = all.subarray(i * k, (i + 1) * k); });
      curve.decoded = found;
    }
    return curve.decoded;
  }

  // a scale for values of both signs: linear near 0, logarithmic beyond
  function two_sided(low, high) {
    const c = Math.pow(10, Math.floor(Math.log10(Math.max(-low / 10, high * 1e-4)))), to = (v) => Math.sign(v) * Math.log10(1 + Math.abs(v) / c);
    const at = [0], power = (k) => (k === 0 ? "1" : k === 1 ? "10" : `10<sup>${k}</sup>`.replace("-", "−"));
    const words = ["0"], first = Math.round(Math.log10(c)), decades = Math.ceil(Math.log10(Math.max(high, -low) / c)), every = Math.max(1, Math.ceil(decades / 6));
    for (let k = 0; k <= decades; k += every) {
      const v = c * Math.pow(10, k);
      if (v <= high * 1.05) { at.push(v); words.push(power(first + k)); }
      if (v <= -low * 1.05) { at.push(-v); words.push("−" + power(first + k)); }
    }
    return { to, axis: { tickvals: at.map(to), ticktext: words, tickformat: "", range: [to(low * 1.3) - 0.05, to(high) + 0.1] } };
  }

  function regret(node, env) {
    const traces = [], lines = [], logX = state.x === "log", centre = data.centres[state.centre];
    // one measure for all agents: the chosen one, or the next that is known for each of them
    const drawable = env.agents.filter((agent) => Object.keys(agent.curves).length), order = Object.keys(data.measures);
    const measure = order.slice(order.indexOf(state.measure)).find((name) => drawable.every((agent) => agent.curves[name])) || "reward";
    const known = measure !== "reward", perStep = !known || state.step;
    const shown = drawable.filter((agent) => agent.curves[measure]);
    let least = Infinity, most = 0, lowest = 0, first = Infinity, last = 0, cut = false, gaps = false;
    for (const agent of shown) {
      const curve = agent.curves[measure], grid = data.grids[curve.grid], found = unpacked(curve)[state.centre];
      for (let i = 0; i < grid.length; i++) {
        if (logX && grid[i] <= 0) continue;
        const v = perStep ? found[i] / grid[i] : found[i];
        first = Math.min(first, grid[i]); last = Math.max(last, grid[i]);
        if (v > 0) { least = Math.min(least, v); most = Math.max(most, v); }
        if (v < 0) lowest = Math.min(lowest, v);
      }
      if (state.seeds && curve.runs) {
        const values = floats(curve.runs), k = curve.run_steps.length;
        values.forEach((v, i) => { lowest = Math.min(lowest, perStep ? v / grid[curve.run_steps[i % k]] : v); });
      }
    }
    const scaled = known && state.y === "log", both = scaled && lowest < 0 && most > 0, logY = scaled && !both && most > 0;
    const scale = both ? two_sided(lowest, most) : null, floor = Math.max(least, most * 1e-8) / 2;
    const place = (v) => (both ? scale.to(v) : logY && !(v > 0) ? null : v);
    for (const agent of shown) {
      const curve = agent.curves[measure], grid = data.grids[curve.grid], found = unpacked(curve), tint = colour(agent.index);
      const at = (name, i) => (perStep ? found[name][i] / grid[i] : found[name][i]);
      const x = [], y = [], rest = [], bandX = [], up = [], down = [];
      for (let i = 0; i < grid.length; i++) {
        if (logX && grid[i] <= 0) continue;
        const v = at(state.centre, i), low = at(centre.low, i), high = at(centre.high, i);
        if (logY && v <= 0) gaps = true;
        x.push(grid[i]); y.push(place(v)); rest.push([number(low), number(high), number(v), grid[i].toLocaleString("en")]);
        if (isFinite(low) && isFinite(high) && !(logY && !(high > 0))) {
          if (logY && low <= 0 && v > 0) cut = true;
          bandX.push(grid[i]); up.push(place(logY ? Math.max(high, floor) : high)); down.push(place(logY ? Math.max(low, floor) : low));
          if (logY) most = Math.max(most, high);
        }
      }
      const group = { legendgroup: "a" + agent.index, name: text(short(agent.name)), visible: hidden.get(env.label)?.has(agent.name) ? "legendonly" : true };
      if (state.bands && bandX.length > 1) {
        traces.push(Object.assign({
          type: "scatter", mode: "lines", x: bandX.concat(bandX.slice().reverse()), y: up.concat(down.reverse()), fill: "toself",
          fillcolor: faded(tint, dark() ? 0.22 : 0.16), line: { width: 0 }, hoverinfo: "skip", showlegend: false,
        }, group));
      }
      if (state.seeds && curve.runs) {
        const steps = curve.run_steps.map((i) => grid[i]), values = floats(curve.runs), k = steps.length, sx = [], sy = [];
        for (let r = 0; r < curve.seeds.length; r++) {
          for (let i = 0; i < k; i++) {
            if (logX && steps[i] <= 0) continue;
            const v = perStep ? values[r * k + i] / steps[i] : values[r * k + i];
            sx.push(steps[i]); sy.push(place(v));
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
        type: "scatter", mode: "lines", x: x, y: y, customdata: rest, line: { color: tint, width: 2.4, dash: dash(agent.index) },
        hovertemplate: "step %{customdata[3]}<br>" + centre.name + " %{customdata[2]}<br>" + centre.band + " %{customdata[0]} … %{customdata[1]}<extra>%{fullData.name}</extra>",
      }, group));
    }
    const title = NAMES[measure] + (perStep ? " per step" : "");
    const range = logY ? Object.assign({ range: [Math.log10(Math.max(least, most * 1e-8)) - 0.1, Math.log10(most) + 0.1] }, decades(Math.max(least, most * 1e-8), most)) : {};
    const rangeX = first < Infinity ? { range: logX ? [Math.log10(first), Math.log10(last) + 0.02] : [0, last * 1.01] } : {};
    const note = document.getElementById(node.dataset.note), said = [];
    if (both) said.push("The vertical axis is linear near 0 and logarithmic beyond, because some values are negative.");
    if (gaps) said.push("The logarithmic axis cannot show values that are 0 or less; the linear one shows them.");
    else if (cut && state.bands) said.push("Bands that reach 0 are cut off at the bottom.");
    if (note) { note.textContent = said.join(" "); note.hidden = !said.length; }
    return [traces.concat(lines), layout(node, {
      height: first_height(node), showlegend: false, margin: { l: 50, r: narrow(node) ? 6 : 14, t: 8, b: 44 },
      xaxis: axis("steps", state.x, Object.assign(logX ? decades(first, last) : {}, rangeX)),
      yaxis: axis(title, logY ? "log" : "linear", both ? scale.axis : range),
      datarevision: JSON.stringify(state) + data.stamp, uirevision: state.x + state.y + state.measure + state.step,
    })];
  }

  // the chart beside the ranking: both on the first screen, at a desk and on a phone
  function first_height(node) {
    if (printing) return 300;
    if (innerWidth < 640) return Math.max(220, Math.min(300, Math.round(innerHeight * 0.3)));
    if (innerWidth < 1088) return Math.max(260, Math.min(420, Math.round(innerHeight * 0.42))); // the table is below it
    return Math.max(340, Math.min(560, innerHeight - 400));
  }

  // ------------------------------------------------------------------ final regret, profiles

  // how many letters all names begin with, up to the end of a word
  function shared_words(names) {
    if (names.length < 2) return 0;
    let n = 0;
    while (n < names[0].length && names.every((one) => one[n] === names[0][n])) n++;
    return names[0].lastIndexOf(" ", n - 1) + 1;
  }

  function distribution(node, env) {
    const finals = new Map(env.agents.map((agent) => [agent, Array.from(floats(agent.finals))])), traces = [];
    const shown = env.order.map((j) => env.agents[j]).filter((agent) => finals.get(agent).length).reverse();
    const all = shown.flatMap((agent) => finals.get(agent)), extreme = (pick) => all.reduce((a, b) => pick(a, b)), least = extreme(Math.min), most = extreme(Math.max), log = least > 0 && most > 8 * least;
    const most_letters = narrow(node) ? 20 : 30, cut = shared_words(shown.map((agent) => agent.name));
    const name = (agent) => {
      const rest = agent.name.length > most_letters ? (cut ? "… " : "") + agent.name.slice(cut) : agent.name; // names that begin alike differ at their ends
      return text(rest.length > most_letters ? rest.slice(0, most_letters - 2) + "…" : rest);
    };
    shown.forEach((agent, k) => {
      const values = finals.get(agent), many = values.length > 200, tint = colour(agent.index);
      traces.push({
        type: "box", orientation: "h", x: values, y: values.map(() => k), name: name(agent), boxpoints: many ? "outliers" : "all", jitter: 0.6, pointpos: 0,
        marker: { color: tint, size: many ? 4 : 6, opacity: 0.75 }, line: { color: tint, width: 1.4 }, fillcolor: faded(tint, 0.12), hoveron: many ? "boxes+points" : "points", showlegend: false,
        customdata: values.map((v, i) => [agent.runs.ids[i], agent.runs.seeds[i], number(v)]),
        hovertemplate: "seed %{customdata[1]}<br>" + env.finals_name + " %{customdata[2]}<extra>%{fullData.name}</extra>",
      });
    });
    return [traces, layout(node, {
      height: 76 + Math.max(26, Math.min(44, 700 / shown.length)) * shown.length, margin: { l: 12, r: 14, t: 6, b: 46 }, showlegend: false,
      xaxis: axis(env.finals_name + (narrow(node) ? "" : " at the last step"), log ? "log" : "linear", log ? Object.assign(decades(least, most, narrow(node)), { range: [Math.log10(least) - 0.08, Math.log10(most) + 0.08] }) : {}),
      yaxis: axis("", "linear", { tickvals: shown.map((_, k) => k), ticktext: shown.map(name), tickformat: "", showgrid: false, showline: false, ticks: "", range: [-0.6, shown.length - 0.4] }),
    })];
  }

  function profile(node) {
    const end = data.profile.end, traces = data.profile.agents.map((agent) => {
      const all = floats(agent.curve), k = all.length / 2;
      return {
        type: "scatter", mode: "lines", x: Array.from(all.subarray(0, k)), y: Array.from(all.subarray(k)), line: { shape: "hv", color: colour(agent.index), width: 2.4, dash: dash(agent.index) },
        name: text(short(agent.name)), legendgroup: "a" + agent.index, hovertemplate: "within %{x:.3g} times the best<br>on %{y:.0%} of " + agent.problems + " problems<extra>%{fullData.name}</extra>",
      };
    });
    return [traces, layout(node, {
      height: narrow(node) ? 300 + 20 * traces.length : 380,
      xaxis: axis(narrow(node) ? "τ times the least regret, at most" : "τ: final regret at most τ times that of the best", "log", Object.assign(decades(1, end, narrow(node)), { range: [-0.01, Math.log10(end)] })),
      yaxis: axis("share of problems", "linear", { tickformat: ".0%", range: [-0.02, 1.04] }),
    })];
  }

  // ------------------------------------------------------------------ optimism

  // each value holds until the next one begins
  function stepped(x, y, end) {
    const sx = [], sy = [];
    x.forEach((at, i) => { sx.push(at, i + 1 < x.length ? x[i + 1] : end); sy.push(y[i], y[i]); });
    return [sx, sy];
  }

  // the plans are stored as rewards per step to maximise: env.factor makes costs, or rates, of them
  function plans_of(env, agent, run) {
    if (!agent.runs.plans[run]) return null;
    const all = floats(agent.runs.plans[run]), k = all.length / 4, at = (i) => Array.from(all.subarray(i * k, (i + 1) * k));
    const shown = (i) => at(i).map((x) => env.factor * x), [low, high] = env.factor < 0 ? [3, 2] : [2, 3];
    return { step: at(0), gain: shown(1), low: shown(low), high: shown(high) };
  }

  function optimism(node, env) {
    const bands = [], lines = [], last = env.horizon, known = env.gain !== null;
    let first = Infinity, least = known ? env.gain : Infinity, most = known ? env.gain : -Infinity;
    for (const agent of env.agents) {
      if (env.run && env.run.agent !== agent) continue;
      const plans = plans_of(env, agent, env.run ? env.run.number : 0);
      if (!plans) continue;
      const { step, gain, low, high } = plans, tint = colour(agent.index);
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
        hovertemplate: "episode from step %{customdata[2]}<br>" + env.gain_name + " %{y:.4g}<br>bracket %{customdata[0]} … %{customdata[1]}<extra>%{fullData.name}</extra>",
      }, group));
    }
    const log = least > 0 && most > 8 * least, place = known && log ? Math.log10(env.gain) : env.gain;
    return [bands.concat(lines), layout(node, {
      height: height(node, lines.length) - 40, margin: { l: 56, r: 32, t: 12, b: 48 },
      xaxis: axis("step at which the episode begins", "log", Object.assign(decades(first, last), { range: [Math.log10(first), Math.log10(last)] })),
      yaxis: axis("planner's " + env.gain_name, log ? "log" : "linear", log ? decades(least, most) : { tickformat: "~g" }),
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
      xaxis: axis("visits of the pair", "log", decades(least, most, narrow(node))), yaxis: axis("bonus", "log", decades(low, high)),
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
    picture.style.minWidth = Math.min(wide * 0.8, 1200) + "px"; // names stay readable on a phone, where the graph scrolls
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
      yaxis: axis("v", "linear", { tickformat: top - low >= 1e4 ? ".2~s" : "~g", range: [low - room, top + 1.6 * room] }),
    })];
  }

  function draw_problem(env) {
    const holder = document.getElementById("graph-" + env.index);
    if (holder && env.drawing.positions.length) graph(holder, env, env.plans[env.chosen]);
  }

  // ------------------------------------------------------------------ drawing what is in view

  const makers = { regret, distribution, profile, optimism, bonus, visits, values };

  function draw(node) {
    const env = data.environments[Number(node.dataset.env)], made = makers[node.dataset.chart](node, env);
    // the buttons are given once: plotly takes a second list of them for another one, and draws for ever
    const buttons = drawn.has(node) ? undefined : config((node.dataset.chart === "profile" ? "" : env.label + " ") + node.dataset.chart);
    const done = Plotly.react(node, made[0], made[1], buttons);
    if (!drawn.has(node)) {
      drawn.add(node);
      node.on("plotly_restyle", () => synchronise(node));
      if (node.dataset.chart === "distribution") node.on("plotly_click", (event) => { location.hash = "run-" + event.points[0].customdata[0]; });
    }
    node.dataset.drawn = node.dataset.chart;
    return done;
  }

  const in_page = (node) => root.contains(node);
  const redraw = (kinds) => { for (const node of drawn) if (in_page(node) && node.clientWidth && (!kinds || kinds.includes(node.dataset.chart))) draw(node); };
  const draw_all = () => { charts.forEach(draw); data.environments.forEach((env) => { if (env.chosen !== null) draw_problem(env); }); };

  function watch_charts() {
    charts = Array.from(document.querySelectorAll(".chart"));
    if (observer) observer.disconnect();
    observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        observer.unobserve(entry.target);
        if (!drawn.has(entry.target)) draw(entry.target);
      }
    }, { rootMargin: "800px 0px" });
    charts.forEach((node) => observer.observe(node));
  }

  // ------------------------------------------------------------------ switches

  function bind_switches() {
    document.querySelectorAll(".tools button").forEach((button) => {
      button.addEventListener("click", () => {
        const { key, value } = button.dataset;
        state[key] = value === undefined ? !state[key] : value;
        show_switches();
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
      select.addEventListener("change", () => { choose(); for (const n of drawn) if (in_page(n) && n.dataset.env === select.dataset.env && (n.dataset.chart === "visits" || n.dataset.chart === "values")) draw(n); });
      choose();
    });
    show_switches();
  }

  function show_switches() {
    document.querySelectorAll(".tools button").forEach((button) => {
      const { key, value } = button.dataset;
      button.setAttribute("aria-pressed", String(value === undefined ? state[key] : state[key] === value));
    });
    const { caption } = data.centres[state.centre], end = caption.indexOf(";");
    document.querySelectorAll(".centre-caption").forEach((node) => { node.textContent = state.bands ? caption : caption.slice(0, end) + "."; });
  }

  // the key beside an agent's name hides its curve, or shows it alone; a row under the pointer stands out in the chart
  function synchronise(node) {
    if (node.dataset.chart !== "regret") return;
    const shown = {};
    node.data.forEach((trace) => { if (trace.showlegend !== false) shown[trace.legendgroup] = trace.visible !== "legendonly"; });
    document.querySelectorAll(`.key[data-env="${node.dataset.env}"]`).forEach((key) => key.setAttribute("aria-pressed", String(shown["a" + key.dataset.agent] !== false)));
  }

  const regret_chart = (env) => charts.find((c) => c.dataset.chart === "regret" && c.dataset.env === String(env));

  function show_agents(node, wanted) {
    const on = [], off = [];
    node.data.forEach((trace, i) => (wanted(trace.legendgroup) ? on : off).push(i));
    const env = data.environments[Number(node.dataset.env)];
    hidden.set(env.label, new Set(env.agents.filter((agent) => !wanted("a" + agent.index)).map((agent) => agent.name)));
    if (off.length) Plotly.restyle(node, { visible: "legendonly" }, off);
    if (on.length) Plotly.restyle(node, { visible: true }, on);
  }

  function emphasise(env, agent) {
    const node = regret_chart(env);
    if (!node || !drawn.has(node)) return;
    node.querySelectorAll(".scatterlayer .trace").forEach((shape) => {
      const found = shape.__data__ && shape.__data__[0];
      shape.style.opacity = agent === null || !found || found.trace.legendgroup === "a" + agent ? "" : "0.15";
    });
  }

  function bind_keys() {
    document.querySelectorAll(".key").forEach((key) => {
      const group = "a" + key.dataset.agent, node = () => { const found = regret_chart(key.dataset.env); if (found && !drawn.has(found)) draw(found); return found; };
      key.addEventListener("click", () => {
        const found = node(), hidden = key.getAttribute("aria-pressed") !== "true";
        if (found) show_agents(found, (g) => (g === group ? hidden : found.data.some((t) => t.legendgroup === g && t.visible !== "legendonly")));
      });
      key.addEventListener("dblclick", () => {
        const found = node();
        if (!found) return;
        const alone = found.data.every((t) => (t.legendgroup === group) === (t.visible !== "legendonly"));
        show_agents(found, (g) => alone || g === group);
      });
    });
    document.querySelectorAll("table.leaderboard tbody tr").forEach((row) => {
      const env = row.closest("table").dataset.env;
      row.addEventListener("mouseenter", () => emphasise(env, row.dataset.agent));
      row.addEventListener("mouseleave", () => emphasise(env, null));
    });
  }

  function paint_keys() {
    document.querySelectorAll(".key line").forEach((line) => {
      const i = Number(line.dataset.agent);
      line.setAttribute("stroke", colour(i));
      line.setAttribute("stroke-dasharray", pattern(i).join(" "));
    });
  }

  // ------------------------------------------------------------------ tables

  function sort_table(table, column, down) {
    const body = table.tBodies[0], heads = Array.from(table.tHead.rows[0].cells), head = heads[column], sign = down ? -1 : 1;
    heads.forEach((h) => h.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.cells[column].dataset.value;
    const rows = Array.from(body.rows).sort((a, b) => compared(key(a), key(b), sign, head.classList.contains("word")));
    rows.forEach((row) => body.appendChild(row));
  }

  // what is unknown comes last, whatever the order
  function compared(x, y, sign, words) {
    if (x === "" || y === "") return (x === "") - (y === "");
    return sign * (words ? x.localeCompare(y, "en", { numeric: true }) : Number(x) - Number(y));
  }

  function bind_tables() {
    document.querySelectorAll("table.sortable").forEach((table) => {
      Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
        head.querySelector("button").addEventListener("click", () => sort_table(table, column, head.getAttribute("aria-sort") === "ascending"));
      });
    });
    document.querySelectorAll("details.runs").forEach((fold) => {
      fold.addEventListener("toggle", () => { if (fold.open) show_runs(fold); });
      if (fold.open) show_runs(fold);
    });
  }

  // ------------------------------------------------------------------ every run, and its episodes

  const ROWS_AT_ONCE = 100;
  const RUN_COLUMNS = [
    ["Agent", "agent", true], ["Seed", "seed"], ["Steps", "steps"], ["Expected regret", "expected_regret"], ["Pseudo-regret", "pseudo_regret"],
    ["Realised regret", "regret"], ["Reward per step", "reward_per_step"], ["Episodes", "episodes"], ["Planning, s", "planning_seconds"], ["Acting, s", "acting_seconds"], ["Run", "id", true],
  ];

  function element(kind, content, parent, attributes) {
    const node = document.createElement(kind);
    if (content !== undefined && content !== null) node.textContent = content;
    for (const name in attributes || {}) node.setAttribute(name, attributes[name]);
    if (parent) parent.appendChild(node);
    return node;
  }

  function runs_of(env) {
    if (!env.rows) {
      env.rows = env.agents.flatMap((agent) => {
        const packed = floats(agent.runs.values), names = ["expected_regret", "pseudo_regret", "regret", "reward_per_step", "planning_seconds", "acting_seconds"];
        return agent.runs.ids.map((id, number) => {
          const row = { owner: agent, number, agent: agent.name, id, seed: agent.runs.seeds[number], steps: agent.runs.steps[number] ?? agent.runs.steps[0], episodes: agent.runs.episodes[number], plans: agent.runs.plans[number] };
          names.forEach((name, j) => { row[name] = packed[number * names.length + j]; });
          return row;
        });
      });
    }
    return env.rows;
  }

  function show_runs(fold) {
    const env = data.environments[Number(fold.dataset.env)], box = fold.querySelector(".box"), rows = runs_of(env).slice();
    const sort = (env.sort = env.sort || { column: -1, down: false }), limit = (env.limit = env.limit || ROWS_AT_ONCE);
    const columns = RUN_COLUMNS.filter(([, name, words]) => words || rows.some((row) => isFinite(row[name])));
    if (sort.column >= 0) {
      const [, name, words] = columns[sort.column], key = (row) => (words ? row[name] : isFinite(row[name]) ? row[name] : "");
      rows.sort((a, b) => compared(key(a), key(b), sort.down ? -1 : 1, words));
    }
    const table = element("table"), head = element("tr", null, element("thead", null, table)), body = element("tbody", null, table);
    columns.forEach(([title, name, words], j) => {
      const cell = element("th", null, head, { scope: "col", class: words ? "word" : "number", "aria-sort": sort.column !== j ? "none" : sort.down ? "descending" : "ascending" });
      element("button", name === "reward_per_step" ? env.earned_name : title, cell, { type: "button", class: "sort" }).addEventListener("click", () => {
        sort.down = sort.column === j && !sort.down; sort.column = j;
        show_runs(fold);
        fold.querySelectorAll("thead button")[j].focus();
      });
    });
    for (const row of rows.slice(0, limit)) {
      const line = element("tr", null, body);
      for (const [, name, words] of columns) {
        const cell = element("td", null, line, { class: words ? "word" : "number" });
        if (name === "episodes" && (row.plans || (served() && row.episodes > 0))) element("a", row.episodes.toLocaleString("en"), cell, { href: "#run-" + row.id, title: "the episodes of this run" });
        else cell.textContent = words ? row[name] : name === "seed" ? String(row.seed) : number(row[name]);
      }
    }
    box.replaceChildren(table);
    if (rows.length > limit) {
      element("button", `Show ${Math.min(rows.length - limit, 10 * ROWS_AT_ONCE).toLocaleString("en")} more of ${rows.length.toLocaleString("en")}`, box, { type: "button", class: "more" })
        .addEventListener("click", () => { env.limit = limit + 10 * ROWS_AT_ONCE; show_runs(fold); });
    }
  }

  // #run-ID shows the episodes of that run
  function follow_link(scroll) {
    const wanted = decodeURIComponent(location.hash.slice(1));
    if (!wanted.startsWith("run-")) return;
    for (const env of data.environments) {
      const found = runs_of(env).find((row) => "run-" + row.id === wanted);
      if (!found) continue;
      if (found.plans) show_episodes(env, found, scroll);
      else if (served()) fetch_plans(env, found, scroll);
      else say_of_episodes(env, `This page has no room for the episodes of ${found.agent} with seed ${found.seed} (${found.id}); gainful watch shows those of every run.`, scroll);
      return;
    }
  }

  // gainful watch has the episodes of the runs for which a page has no room
  const served = () => document.getElementById("live") !== null;

  function fetch_plans(env, row, scroll) {
    fetch("plans/" + encodeURIComponent(row.id), { cache: "no-store" })
      .then((answer) => (answer.ok ? answer.json() : null))
      .then((answer) => {
        if (!answer) { say_of_episodes(env, `The run of ${row.agent} with seed ${row.seed} (${row.id}) has stored no plans.`, scroll); return; }
        row.plans = row.owner.runs.plans[row.number] = answer.plans;
        if (env === data.environments[env.index]) show_episodes(env, row, scroll);
      })
      .catch(() => say_of_episodes(env, "gainful watch does not answer any more, so that the episodes of this run cannot be shown.", scroll));
  }

  function say_of_episodes(env, text, scroll) {
    const words = document.getElementById("episodes-" + env.index);
    if (!words) return;
    show_episodes(env, null, false);
    words.textContent = text;
    if (scroll) words.scrollIntoView({ block: "center" });
  }

  function show_episodes(env, row, scroll) {
    env.run = row ? { agent: row.owner, number: row.number } : null;
    const node = charts.find((c) => c.dataset.chart === "optimism" && c.dataset.env === String(env.index)), place = document.getElementById("episode-table-" + env.index);
    if (!node || !place) return;
    const words = document.getElementById("episodes-" + env.index);
    words.textContent = row ? `The run of ${row.agent} with seed ${row.seed} (${row.id}) is shown. ` : "For each agent the run with the lowest seed is shown.";
    place.replaceChildren();
    draw(node);
    if (!row) return;
    element("button", "Show one run of each agent", words, { type: "button" }).addEventListener("click", () => {
      history.replaceState(null, "", location.pathname + location.search);
      show_episodes(env, null, false);
    });
    const plans = plans_of(env, row.owner, row.number), fold = element("details", null, place);
    element("summary", plans.step.length < row.episodes ? `Table of ${plans.step.length} of its ${row.episodes.toLocaleString("en")} episodes` : `Table of its ${row.episodes} episodes`, fold);
    const table = element("table", null, element("div", null, fold, { class: "box" })), head = element("tr", null, element("thead", null, table)), body = element("tbody", null, table);
    ["From step", env.gain_name[0].toUpperCase() + env.gain_name.slice(1) + " of the plan", "Bracket from", "to"].forEach((title) => element("th", title, head, { scope: "col", class: "number" }));
    plans.step.forEach((step, i) => {
      const line = element("tr", null, body);
      [step.toLocaleString("en"), plans.gain[i].toPrecision(5), plans.low[i].toPrecision(5), plans.high[i].toPrecision(5)].forEach((value) => element("td", value, line, { class: "number" }));
    });
    if (scroll) node.closest(".part").scrollIntoView({ block: "start" });
  }

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
    unfold(on);
    paint();
    if (on) draw_all();
  }
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));
  matchMedia("print").addEventListener("change", (event) => paper(event.matches));
  const was_open = new Map();
  function unfold(on) {
    document.querySelectorAll("details").forEach((fold) => {
      if (on) { was_open.set(fold, fold.open); fold.open = fold.open || !fold.matches(".runs, .episodes details"); }
      else if (was_open.has(fold)) fold.open = was_open.get(fold);
    });
  }

  // ------------------------------------------------------------------ beginning, and beginning again with new data

  function bind() {
    watch_charts();
    bind_switches();
    bind_keys();
    bind_tables();
    const display = document.querySelector("details.display");
    if (display && innerWidth < 640) display.open = false;
  }

  const fold_name = (fold) => (fold.closest("section, header") || fold.parentNode).id + "|" + fold.className + "|" + fold.querySelector("summary").textContent.replace(/[\d,]+/g, "");
  const chart_name = (node) => node.dataset.chart + "|" + (node.dataset.chart === "profile" ? "" : node.closest("section").querySelector("h2").textContent);

  // another version of the page in place of this one: charts, switches, folds, sorting and the place on the screen stay
  function renew(page) {
    const fresh = page.querySelector("main"), old = document.querySelector("main");
    const anchors = () => Array.from(document.querySelectorAll("section, .part, header"));
    const at = anchors().findIndex((node) => node.getBoundingClientRect().bottom > 0), before = at < 0 ? 0 : anchors()[at].getBoundingClientRect().top;
    const open = new Map(Array.from(old.querySelectorAll("details"), (fold) => [fold_name(fold), fold.open]));
    const chosen = new Map(Array.from(old.querySelectorAll("select"), (select) => [select.id, select.selectedOptions[0].textContent]));
    const sorted = Array.from(old.querySelectorAll("table.sortable"), (table) => Array.from(table.tHead.rows[0].cells, (head) => head.getAttribute("aria-sort")));
    const kept = new Map(data.environments.map((env) => [env.label, env]));
    const focus = document.activeElement && document.activeElement.dataset && document.activeElement.dataset.key ? document.activeElement.dataset : null;
    data = JSON.parse(page.getElementById("data").textContent);
    data.stamp = Date.now();
    const ready = document.importNode(fresh, true), live = new Map(Array.from(drawn, (node) => [chart_name(node), node]));
    ready.querySelectorAll(".chart").forEach((place) => {
      const node = live.get(chart_name(place));
      if (!node) return;
      ["data-env", "data-note", "aria-label"].forEach((name) => { if (place.hasAttribute(name)) node.setAttribute(name, place.getAttribute(name)); });
      place.replaceWith(node);
    });
    old.replaceWith(ready);
    drawn.forEach((node) => { if (!in_page(node)) { Plotly.purge(node); drawn.delete(node); } });
    ready.querySelectorAll("details").forEach((fold) => { if (open.has(fold_name(fold))) fold.open = open.get(fold_name(fold)); });
    ready.querySelectorAll("select").forEach((select) => {
      const option = Array.from(select.options).find((one) => one.textContent === chosen.get(select.id));
      if (option) select.value = option.value;
    });
    data.environments.forEach((env) => { const past = kept.get(env.label); if (past) { env.sort = past.sort; env.limit = past.limit; } });
    const display = ready.querySelector("details.display"), unfolded = display && display.open;
    bind();
    if (display) display.open = unfolded;
    ready.querySelectorAll("table.sortable").forEach((table, i) => {
      (sorted[i] || []).forEach((order, column) => { if (order !== "none" && table.tHead.rows[0].cells[column]) sort_table(table, column, order === "descending"); });
    });
    paint();
    drawn.forEach(synchronise);
    follow_link(false);
    if (focus) { const again = Array.from(ready.querySelectorAll(".tools button")).find((b) => b.dataset.key === focus.key && b.dataset.value === focus.value); if (again) again.focus({ preventScroll: true }); }
    if (at >= 0 && anchors()[at]) scrollBy({ top: anchors()[at].getBoundingClientRect().top - before, behavior: "instant" });
  }

  bind();
  paint();
  follow_link(true);
  addEventListener("hashchange", () => follow_link(true));
  window.gainful = { renew };

  let before = innerWidth, timer = 0;
  addEventListener("resize", () => {
    if (innerWidth === before || printing) return;
    before = innerWidth;
    clearTimeout(timer);
    timer = setTimeout(() => redraw(), 150);
  });
  root.dataset.ready = "yes";
})();
