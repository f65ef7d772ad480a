// The plots of a report: panels over one axis of time, which zoom together. What is drawn is in #data, and nothing is fetched.
"use strict";
(() => {
  const body = document.body;
  body.dataset.errors = "0";
  const wrong = (what) => {
    body.dataset.errors = String(Number(body.dataset.errors) + 1);
    body.dataset.error = String(what);
  };
  addEventListener("error", (event) => wrong(event.message));
  addEventListener("unhandledrejection", (event) => wrong(event.reason));

  const data = JSON.parse(document.getElementById("data").textContent);
  const LEFT = 66, RIGHT = 12, TOP = 6, BOTTOM = 20;

  // ---- numbers ----
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const series = data.series.map((s) => {
    const values = new Float32Array(bytes(s.values));
    const rows = s.columns > 0 ? values.length / s.columns : 0;
    const times = s.times === undefined ? Float64Array.from({ length: rows }, (_, k) => s.first + k * s.step) : new Float64Array(bytes(s.times));
    const gaps = Float64Array.from({ length: Math.max(rows - 1, 0) }, (_, k) => times[k + 1] - times[k]).sort();
    // Samples that are further apart than this are not joined.
    const longest = 3.5 * (gaps.length > 0 ? gaps[gaps.length >> 1] : 0);
    return { times, longest, column: (c) => values.subarray(c * rows, (c + 1) * rows) };
  });
  const trains = data.trains.map((train) => {
    const steps = new Uint32Array(bytes(train.t));
    const cells = train.wide ? new Uint32Array(bytes(train.i)) : new Uint16Array(bytes(train.i));
    return { times: Float64Array.from(steps, (k) => train.first + k * train.step), cells };
  });
  /** The first place whose time is not before t. */
  const place = (times, t) => {
    let low = 0, high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] < t) low = middle + 1; else high = middle;
    }
    return low;
  };
  /** The place whose time is nearest to t; -1 if there is none. */
  const nearest = (times, t) => {
    const k = place(times, t);
    if (k === 0) return times.length > 0 ? 0 : -1;
    return k === times.length || t - times[k - 1] < times[k] - t ? k - 1 : k;
  };
  const few = (x) => {
    if (!Number.isFinite(x)) return "–";
    const short = Number(x.toPrecision(5));
    return (Math.abs(short) >= 1e6 || (short !== 0 && Math.abs(short) < 1e-4) ? short.toExponential() : String(short)).replace("-", "−");
  };
  /** Round numbers between two, about so many. */
  const ticks = (low, high, count, least) => {
    const rough = Math.max((high - low) / Math.max(count, 1), least || 0);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999) || 10 * power;
    const all = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step && all.length < 100; k++) all.push(k * step);
    return { all, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
  };
  const label = (x, digits) => {
    if (Math.abs(x) >= 1e6 || digits > 6) return few(x);
    return (x === 0 ? 0 : x).toFixed(Math.min(digits, 10)).replace("-", "−");
  };
  const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

  // ---- colours ----
  let ink = {};
  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    ink = { text: of("text"), faint: of("faint"), line: of("line"), grid: of("grid"), spike: of("spike"), fill: of("fill"), rate: of("c0") };
    ink.lines = Array.from({ length: 8 }, (_, k) => of(`c${k}`));
  };
  // Viridis, by nine of its colours.
  const RAMP = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];
  const shade = (x) => {
    const at = Math.min(Math.max(x, 0), 1) * (RAMP.length - 1);
    const k = Math.min(Math.floor(at), RAMP.length - 2);
    return RAMP[k].map((c, channel) => c + (at - k) * (RAMP[k + 1][channel] - c));
  };
  const gradient = `linear-gradient(90deg, ${RAMP.map((c) => `rgb(${c.join(",")})`).join(",")})`;

  // ---- the time shown ----
  const whole = [data.from, data.to];
  const least = (whole[1] - whole[0]) * 1e-7;
  const seconds = whole[1] - whole[0] >= 1e4;
  const scale = seconds ? 1e-3 : 1, unit = seconds ? "s" : "ms";
  let shown = whole.slice();
  let fit = false;
  const inputs = ["from", "to"].map((id) => document.getElementById(id));
  const clamped = (from, to) => {
    const span = Math.min(Math.max(to - from, least), whole[1] - whole[0]);
    const start = Math.min(Math.max(from, whole[0]), whole[1] - span);
    return [start, start + span];
  };
  const exact = (t) => String(Number(t.toPrecision(9)));
  const show = (from, to, keep) => {
    if (!(Number.isFinite(from) && Number.isFinite(to) && from < to)) return;
    shown = clamped(from, to);
    inputs.forEach((input, k) => { input.value = exact(Number((shown[k] * scale).toPrecision(7))); });
    const all = shown[0] === whole[0] && shown[1] === whole[1];
    body.dataset.window = shown.map(exact).join(",");
    if (!keep) {
      // So that a link to the page can name the time; where pages may not (in frames), nothing is lost.
      try { history.replaceState(null, "", all ? "#" : `#t=${shown.map(exact).join(",")}`); } catch { /* a frame */ }
    }
    refresh();
  };
  const zoom = (factor, centre) => {
    const c = centre === undefined ? (shown[0] + shown[1]) / 2 : centre;
    show(c - (c - shown[0]) * factor, c + (shown[1] - c) * factor);
  };
  const pan = (share) => {
    const by = Math.min(Math.max((shown[1] - shown[0]) * share, whole[0] - shown[0]), whole[1] - shown[1]);
    show(shown[0] + by, shown[1] + by);
  };
  const reset = () => show(whole[0], whole[1]);
  const asked = () => {
    const found = /^#t=(-?[\d.eE+-]+),(-?[\d.eE+-]+)$/.exec(location.hash);
    const window = found ? [Number(found[1]), Number(found[2])] : null;
    return window && window.every(Number.isFinite) && window[0] < window[1] ? window : null;
  };

  // ---- panels ----
  const element = (name, parent, text, className) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    parent.append(made);
    return made;
  };
  const panels = [];
  const heights = {
    traces: (p) => (p.heat ? Math.min(60 + 5 * p.lines.length, 300) : data.panels.length > 12 ? 140 : 190),
    raster: (p) => (trains[p.train].times.length === 0 ? 56 : Math.min(Math.max(30 + 14 * p.cells, 50), 300)),
    rate: () => 130,
  };

  const make = (p) => {
    const root = element("section", document.getElementById("panels"), undefined, "panel");
    const head = element("div", root, undefined, "head");
    element("h3", head, p.title);
    if (p.note) element("span", head, p.note, "note");
    p.tools = element("span", head);
    p.legend = p.kind === "traces" ? element("div", root, undefined, "legend") : element("span", head);
    p.stage = element("div", root, undefined, "stage");
    p.canvas = element("canvas", p.stage);
    p.canvas.tabIndex = 0;
    p.canvas.setAttribute("role", "img");
    p.cross = element("div", p.stage, undefined, "cross");
    p.band = element("div", p.stage, undefined, "band");
    if (p.kind === "traces") {
      p.hidden = new Set();
      p.data = p.lines.map(([s, c]) => ({ times: series[s].times, longest: series[s].longest, values: series[s].column(c) }));
      p.whole = range(p, whole);
      p.few = p.lines.length <= 8 ? p.lines.map((_, k) => k) : Array.from({ length: 8 }, (_, k) => Math.floor(k * (p.lines.length - 1) / 7));
      p.heat = p.map && p.lines.length >= 16;
      if (p.map && p.lines.length > 8) {
        const button = element("button", p.tools, "");
        const named = () => { button.textContent = p.heat ? "show 8 lines" : `show all ${p.lines.length} as a map`; };
        button.addEventListener("click", () => { p.heat = !p.heat; named(); legend(p); paint(p); });
        named();
      }
    }
    legend(p);
    listen(p);
    panels.push(p);
  };
  const describe = (p) => {
    const what = { traces: p.heat ? "map of values" : plural(p.kind === "traces" ? drawn(p).length : 0, "line"), raster: "spikes of cells", rate: "rate" }[p.kind];
    p.canvas.setAttribute("aria-label", `${p.title}: ${what} from ${few(shown[0] * scale)} to ${few(shown[1] * scale)} ${unit}`);
  };
  const drawn = (p) => p.few.filter((k) => !p.hidden.has(k));
  /** The least and the largest value within a time, of what is drawn. */
  const range = (p, [from, to]) => {
    let low = Infinity, high = -Infinity;
    p.data.forEach(({ times, values }, k) => {
      if (p.hidden.has(k)) return;
      for (let at = place(times, from); at < times.length && times[at] <= to; at++) {
        if (values[at] < low) low = values[at];
        if (values[at] > high) high = values[at];
      }
    });
    return low <= high && Number.isFinite(low) && Number.isFinite(high) ? [low, high] : [0, 1];
  };
  const legend = (p) => {
    p.legend.replaceChildren();
    p.outputs = [];
    const shownUnit = p.unit ? ` ${p.unit}` : "";
    if (p.kind === "traces" && !p.data.some(({ times }) => times.length > 0)) {
      element("span", p.legend, "no values");
      p.outputs = p.lines.map(() => element("output", p.legend));
    } else if (p.kind === "traces" && p.heat) {
      element("span", p.legend, `${few(p.whole[0])}${shownUnit}`);
      element("span", p.legend, undefined, "ramp").style.background = gradient;
      element("span", p.legend, `${few(p.whole[1])}${shownUnit}`);
      p.outputs.push(element("output", p.legend));
    } else if (p.kind === "traces") {
      p.few.forEach((k, order) => {
        const button = element("button", p.legend);
        button.title = "show or hide";
        button.setAttribute("aria-pressed", String(!p.hidden.has(k)));
        element("span", button, undefined, "swatch").style.background = `var(--c${order % 8})`;
        element("span", button, p.lines[k][2]);
        p.outputs[k] = element("output", button);
        button.addEventListener("click", () => {
          if (!p.hidden.delete(k)) p.hidden.add(k);
          button.setAttribute("aria-pressed", String(!p.hidden.has(k)));
          paint(p);
        });
      });
    } else {
      p.outputs.push(element("output", p.legend));
    }
  };

  /** The inside of a panel, in CSS pixels, and what lies where. */
  const frame = (p) => {
    const width = Math.max(p.canvas.clientWidth, 200), height = heights[p.kind](p);
    const left = LEFT, right = width - RIGHT, top = TOP, bottom = height - BOTTOM;
    const x = (t) => left + (t - shown[0]) / (shown[1] - shown[0]) * (right - left);
    const t = (px) => shown[0] + (px - left) / (right - left) * (shown[1] - shown[0]);
    return { width, height, left, right, top, bottom, x, t };
  };

  let sharp = 0;
  const paint = (p) => {
    const f = frame(p), ratio = Math.max(sharp, devicePixelRatio || 1);
    p.dirty = false;
    p.canvas.style.height = `${f.height}px`;
    p.canvas.width = Math.round(f.width * ratio);
    p.canvas.height = Math.round(f.height * ratio);
    const g = p.canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.font = "12px system-ui, sans-serif";
    [p.cross, p.band].forEach((mark) => { mark.style.top = `${f.top}px`; mark.style.height = `${f.bottom - f.top}px`; });
    p.points = painters[p.kind](p, g, f);
    g.strokeStyle = ink.line;
    g.strokeRect(f.left - 0.5, f.top - 0.5, f.right - f.left + 1, f.bottom - f.top + 1);
    axis(g, f, p === panels[panels.length - 1]);
    describe(p);
  };
  const axis = (g, f, last) => {
    const { all, digits } = ticks(shown[0] * scale, shown[1] * scale, (f.right - f.left) / 90);
    g.fillStyle = ink.faint;
    g.textAlign = "center";
    g.textBaseline = "top";
    all.forEach((value, k) => {
      const x = f.x(value / scale);
      const text = label(value, digits) + (last && k === all.length - 1 ? ` ${unit}` : "");
      g.textAlign = x > f.right - 20 ? "right" : x < f.left + 12 ? "left" : "center";
      g.fillText(text, Math.min(x, f.right + RIGHT - 2), f.bottom + 5);
    });
  };
  const grid = (g, f, low, high, name, leastStep) => {
    const y = (value) => f.bottom - (value - low) / (high - low) * (f.bottom - f.top);
    const { all, digits } = ticks(low, high, Math.max(2, (f.bottom - f.top) / 32), leastStep);
    g.strokeStyle = ink.grid;
    g.fillStyle = ink.faint;
    g.lineWidth = 1;
    g.textAlign = "right";
    g.textBaseline = "middle";
    g.beginPath();
    ticks(shown[0] * scale, shown[1] * scale, (f.right - f.left) / 90).all.forEach((value) => {
      const x = Math.round(f.x(value / scale)) + 0.5;
      g.moveTo(x, f.top);
      g.lineTo(x, f.bottom);
    });
    all.forEach((value) => {
      const at = Math.round(y(value)) + 0.5;
      g.moveTo(f.left, at);
      g.lineTo(f.right, at);
      g.fillText(label(value, digits), f.left - 7, y(value));
    });
    g.stroke();
    g.save();
    g.translate(11, (f.top + f.bottom) / 2);
    g.rotate(-Math.PI / 2);
    g.textAlign = "center";
    g.fillStyle = ink.text;
    const room = f.bottom - f.top + 10;
    if (g.measureText(name).width > room) g.font = "10px system-ui, sans-serif";
    g.fillText(name, 0, 0, room);
    g.restore();
    return y;
  };
  const inside = (g, f, draw) => {
    g.save();
    g.beginPath();
    g.rect(f.left, f.top, f.right - f.left, f.bottom - f.top);
    g.clip();
    draw();
    g.restore();
  };

  const line = (g, f, y, { times, values, longest }) => {
    const begin = Math.max(place(times, shown[0]) - 1, 0), end = Math.min(place(times, shown[1]) + 1, times.length);
    const every = end - begin <= 4 * (f.right - f.left);
    const alone = [];
    let open = false, last = NaN, column = NaN, low = 0, high = 0, points = 0;
    // Of a pixel with many samples: where it begins, its extremes, where it ends.
    const close = () => {
      if (!every && Number.isFinite(column)) {
        g.lineTo(column, y(low));
        g.lineTo(column, y(high));
        g.lineTo(column, y(last));
      }
      column = NaN;
    };
    g.beginPath();
    for (let k = begin; k < end; k++) {
      const value = values[k];
      if (!Number.isFinite(value) || (k > begin && times[k] - times[k - 1] > longest && longest > 0)) {
        close();
        open = false;
        if (!Number.isFinite(value)) continue;
      }
      if (times[k] >= shown[0] && times[k] <= shown[1]) points++;
      const x = every ? f.x(times[k]) : Math.floor(f.x(times[k])) + 0.5;
      if (!open) {
        g.moveTo(x, y(value));
        const parted = (at) => at >= times.length || !Number.isFinite(values[at]) || (longest > 0 && times[at] - times[at - 1] > longest);
        if (every && parted(k + 1)) alone.push([x, y(value)]);
        open = true;
      } else if (every || x !== column) {
        close();
        g.lineTo(x, y(value));
      }
      if (x !== column) { column = x; low = high = value; }
      low = Math.min(low, value);
      high = Math.max(high, value);
      last = value;
    }
    close();
    g.stroke();
    // A sample that stands alone is a dot.
    g.fillStyle = g.strokeStyle;
    alone.forEach(([x, at]) => {
      g.beginPath();
      g.arc(x, at, 2, 0, 2 * Math.PI);
      g.fill();
    });
    return points;
  };

  const heat = (p, g, f) => {
    const rows = p.data.length, width = Math.round(f.right - f.left), [low, high] = p.whole;
    const picture = new ImageData(width, rows);
    let points = 0;
    p.data.forEach(({ times, values, longest }, row) => {
      // Cell 0 is at the bottom. Of several samples in a pixel the largest is shown.
      const most = new Float32Array(width).fill(NaN);
      const begin = Math.max(place(times, shown[0]) - 1, 0);
      for (let k = begin; k < times.length && (times[k] <= shown[1]); k++) {
        const next = k + 1 < times.length && times[k + 1] - times[k] <= longest ? times[k + 1] : times[k];
        const from = Math.max(Math.floor(f.x(times[k]) - f.left), 0);
        const to = Math.min(Math.max(Math.ceil(f.x(next) - f.left), from + 1), width);
        if (times[k] >= shown[0] && Number.isFinite(values[k])) points++;
        for (let x = from; x < to; x++) if (!(most[x] >= values[k])) most[x] = values[k];
      }
      for (let x = 0; x < width; x++) {
        if (!Number.isFinite(most[x])) continue;
        const at = 4 * ((rows - 1 - row) * width + x);
        picture.data.set([...shade(high > low ? (most[x] - low) / (high - low) : 0.5), 255], at);
      }
    });
    const small = document.createElement("canvas");
    small.width = width;
    small.height = rows;
    small.getContext("2d").putImageData(picture, 0, 0);
    // Numbers of cells, where they are evenly chosen.
    grid(g, f, 0, rows, "");
    g.clearRect(0, 0, f.left - 1, f.height);
    g.imageSmoothingEnabled = false;
    g.drawImage(small, f.left, f.top, f.right - f.left, f.bottom - f.top);
    g.fillStyle = ink.faint;
    g.textAlign = "right";
    g.textBaseline = "middle";
    const each = Math.max(1, Math.ceil(rows / Math.max(2, (f.bottom - f.top) / 34)));
    for (let row = 0; row < rows; row += each) {
      g.fillText(p.lines[row][3], f.left - 7, f.bottom - (row + 0.5) / rows * (f.bottom - f.top), f.left - 26);
    }
    sideways(g, f, p.element);
    return points;
  };
  const sideways = (g, f, text) => {
    g.save();
    g.translate(11, (f.top + f.bottom) / 2);
    g.rotate(-Math.PI / 2);
    g.textAlign = "center";
    g.textBaseline = "middle";
    g.fillStyle = ink.text;
    g.fillText(text, 0, 0, f.bottom - f.top + 10);
    g.restore();
  };

  const bins = (p, f) => {
    // Bins are joined until each is as wide as can be seen.
    const seen = (shown[1] - shown[0]) / ((f.right - f.left) / 3);
    const joined = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((m) => m * p.bin >= seen) || 1000;
    return { joined, width: joined * p.bin };
  };
  const rates = (p, f) => {
    const { joined, width } = bins(p, f);
    const all = [];
    for (let k = 0; k * joined < p.counts.length; k++) {
      const from = whole[0] + k * width, to = Math.min(from + width, whole[1]);
      let spikes = 0;
      for (let at = k * joined; at < Math.min((k + 1) * joined, p.counts.length); at++) spikes += p.counts[at];
      all.push([from, to, spikes / p.cells / (Math.max(to - from, 1e-9) / 1e3)]);
    }
    // Of a last bin that is cut short little can be said.
    if (all.length > 1 && all[all.length - 1][1] - all[all.length - 1][0] < 0.5 * width) all.pop();
    return all;
  };

  const painters = {
    traces: (p, g, f) => {
      if (p.heat) return heat(p, g, f);
      let [low, high] = fit ? range(p, shown) : p.whole;
      const margin = high > low ? 0.06 * (high - low) : Math.max(Math.abs(high) * 0.05, 0.5);
      if (p.fraction && !fit) [low, high] = [0, 1];
      const y = grid(g, f, low - margin, high + margin, p.label);
      let points = 0;
      inside(g, f, () => {
        g.lineWidth = 1.5;
        g.lineJoin = "round";
        p.few.forEach((k, order) => {
          if (p.hidden.has(k)) return;
          g.strokeStyle = ink.lines[order % 8];
          points += line(g, f, y, p.data[k]);
        });
      });
      g.lineWidth = 1;
      return points;
    },
    raster: (p, g, f) => {
      const { times, cells } = trains[p.train];
      const y = grid(g, f, -0.5, p.cells - 0.5, "cell", 1);
      const begin = place(times, shown[0]), row = (f.bottom - f.top) / p.cells;
      let end = begin;
      while (end < times.length && times[end] <= shown[1]) end++;
      const wide = end - begin < 2000 ? 2 : 1.4, high = Math.min(Math.max(0.8 * row, end - begin < 2000 ? 3.5 : 1.6), 14);
      const full = (end - begin) * high * wide / ((f.right - f.left) * (f.bottom - f.top));
      inside(g, f, () => {
        g.fillStyle = ink.spike;
        g.globalAlpha = Math.min(1, Math.max(0.3, 0.35 / Math.max(full, 1e-9)));
        for (let k = begin; k < end; k++) g.fillRect(f.x(times[k]) - wide / 2, y(cells[k]) - high / 2, wide, high);
      });
      if (end === begin) {
        g.fillStyle = ink.faint;
        g.textAlign = "center";
        g.fillText(times.length > 0 ? "no spikes in this time" : "no spikes", (f.left + f.right) / 2, (f.top + f.bottom) / 2);
      }
      return end - begin;
    },
    rate: (p, g, f) => {
      const all = rates(p, f);
      const top = Math.max(...all.map((bin) => bin[2]), 0) * 1.08 || 1;
      const y = grid(g, f, 0, top, p.label);
      inside(g, f, () => {
        g.fillStyle = ink.fill;
        g.strokeStyle = ink.rate;
        g.lineWidth = 1.2;
        g.beginPath();
        g.moveTo(f.x(all[0][0]), f.bottom + 2);
        all.forEach(([from, to, rate]) => { g.lineTo(f.x(from), y(rate)); g.lineTo(f.x(to), y(rate)); });
        g.lineTo(f.x(all[all.length - 1][1]), f.bottom + 2);
        g.fill();
        g.stroke();
      });
      g.lineWidth = 1;
      p.outputs[0].textContent = `bins of ${few(bins(p, f).width)} ms`;
      return all.filter((bin) => bin[1] > shown[0] && bin[0] < shown[1]).length;
    },
  };

  // ---- what is under the pointer ----
  const at = document.getElementById("at");
  const point = (panel, px, py) => {
    const t = px === null ? null : frame(panel).t(px);
    const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10((shown[1] - shown[0]) * scale / 2000))));
    at.textContent = t === null ? "" : `t = ${label(t * scale, digits)} ${unit}`;
    panels.forEach((p) => {
      const f = frame(p);
      p.cross.style.display = t === null ? "none" : "block";
      if (t !== null) p.cross.style.left = `${f.x(t)}px`;
      const own = p === panel && t !== null, suffix = p.unit ? ` ${p.unit}` : "";
      const valueAt = ({ times, values, longest }) => {
        const k = nearest(times, t);
        return k < 0 || (longest > 0 && Math.abs(times[k] - t) > longest) ? NaN : values[k];
      };
      if (p.kind === "traces" && p.heat) {
        const row = own ? Math.floor((f.bottom - py) / (f.bottom - f.top) * p.lines.length) : -1;
        const hit = row >= 0 && row < p.lines.length;
        p.outputs[0].textContent = hit ? `${p.lines[row][2]}: ${few(valueAt(p.data[row]))}${suffix}` : "";
      } else if (p.kind === "traces") {
        p.few.forEach((k) => { p.outputs[k].textContent = t === null ? "" : few(valueAt(p.data[k])) + suffix; });
      } else if (p.kind === "raster") {
        p.outputs[0].textContent = own ? spike(p, f, t, py) : "";
      } else {
        const bin = t === null ? undefined : rates(p, f).find(([from, to]) => t >= from && t < to);
        const { width } = bins(p, f);
        p.outputs[0].textContent = `bins of ${few(width)} ms${bin ? `; ${few(bin[2])} Hz` : ""}`;
      }
    });
  };
  const spike = (p, f, t, py) => {
    const { times, cells } = trains[p.train];
    const cell = Math.round((f.bottom - py) / (f.bottom - f.top) * p.cells - 0.5);
    if (cell < 0 || cell >= p.cells) return "";
    const reach = 5 * (shown[1] - shown[0]) / (f.right - f.left), rows = 4 * p.cells / (f.bottom - f.top);
    let best = -1, distance = Infinity;
    for (let k = place(times, t - reach); k < times.length && times[k] <= t + reach; k++) {
      const away = Math.hypot((times[k] - t) / reach, (cells[k] - cell) / Math.max(rows, 0.5));
      if (away < distance) [best, distance] = [k, away];
    }
    return distance <= 1.5 ? `cell ${cells[best]}: spike at ${exact(times[best] * scale)} ${unit}` : `cell ${cell}`;
  };

  const listen = (p) => {
    let begin = null, moved = false, base = null;
    const touches = new Map();
    const where = (event) => {
      const box = p.canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const within = (px) => { const f = frame(p); return Math.min(Math.max(px, f.left), f.right); };
    p.canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      try { p.canvas.setPointerCapture(event.pointerId); } catch { /* it was let go meanwhile */ }
      const [px] = where(event);
      touches.set(event.pointerId, px);
      begin = within(px);
      moved = false;
      base = { shown: shown.slice(), pan: event.shiftKey || event.pointerType === "touch", touches: [...touches.values()] };
    });
    p.canvas.addEventListener("pointermove", (event) => {
      const [px, py] = where(event), f = frame(p);
      if (touches.has(event.pointerId)) touches.set(event.pointerId, px);
      if (begin !== null && touches.size === 2 && base.touches.length === 2) {
        // Two fingers: the times under them stay under them.
        const time = (x) => base.shown[0] + (x - f.left) / (f.right - f.left) * (base.shown[1] - base.shown[0]);
        const [a, b] = base.touches.map(time), [u, v] = [...touches.values()];
        if (Math.abs(u - v) > 10) {
          const span = (b - a) / (v - u), from = a - (u - f.left) * span;
          if (span > 0) show(from, from + span * (f.right - f.left));
        }
        moved = true;
      } else if (begin !== null && base.pan) {
        const by = (begin - px) / (f.right - f.left) * (base.shown[1] - base.shown[0]);
        if (Math.abs(begin - px) > 3) moved = true;
        if (moved) {
          const limited = Math.min(Math.max(by, whole[0] - base.shown[0]), whole[1] - base.shown[1]);
          show(base.shown[0] + limited, base.shown[1] + limited);
        }
      } else if (begin !== null) {
        const end = within(px);
        moved = moved || Math.abs(end - begin) > 3;
        panels.forEach((other) => {
          other.band.style.display = moved ? "block" : "none";
          other.band.style.left = `${Math.min(begin, end)}px`;
          other.band.style.width = `${Math.abs(end - begin)}px`;
        });
      }
      point(p, px >= f.left && px <= f.right ? px : null, py);
    });
    const done = (event) => {
      touches.delete(event.pointerId);
      if (begin === null) return;
      const f = frame(p), [from, to] = [begin, within(where(event)[0])].sort((a, b) => a - b);
      panels.forEach((other) => { other.band.style.display = "none"; });
      begin = touches.size > 0 ? begin : null;
      if (event.type === "pointerup" && moved && !base.pan && to - from > 3) show(f.t(from), f.t(to));
    };
    p.canvas.addEventListener("pointerup", done);
    p.canvas.addEventListener("pointercancel", done);
    p.canvas.addEventListener("pointerleave", () => point(p, null, 0));
    p.canvas.addEventListener("dblclick", reset);
    p.canvas.addEventListener("wheel", (event) => {
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!event.ctrlKey && !event.metaKey && !sideways) return;
      event.preventDefault();
      if (sideways) pan(event.deltaX / 1000); else zoom(Math.exp(Math.min(Math.max(event.deltaY, -100), 100) / 200), frame(p).t(within(where(event)[0])));
    }, { passive: false });
    p.canvas.addEventListener("keydown", (event) => {
      const act = { ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: reset, Home: reset, Escape: reset }[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });
  };

  // ---- drawing again ----
  const near = (p) => {
    const box = p.stage.getBoundingClientRect();
    return box.bottom > -200 && box.top < innerHeight + 200;
  };
  const counted = () => {
    body.dataset.points = String(panels.filter((p) => p.kind === "traces").reduce((n, p) => n + p.points, 0));
    body.dataset.spikes = String(panels.filter((p) => p.kind === "raster").reduce((n, p) => n + p.points, 0));
  };
  let waiting = 0;
  /** Draws again what can be seen; the rest when it comes into view. */
  const refresh = () => {
    panels.forEach((p) => { p.dirty = true; });
    soon();
  };
  const soon = () => {
    if (waiting) return;
    waiting = requestAnimationFrame(() => {
      waiting = 0;
      panels.filter((p) => p.dirty && near(p)).forEach(paint);
      counted();
    });
  };
  const all = () => {
    colours();
    panels.forEach(paint);
    counted();
  };

  const control = (id, act) => document.getElementById(id).addEventListener("click", act);
  control("in", () => zoom(0.5));
  control("out", () => zoom(2));
  control("back", () => pan(-0.5));
  control("on", () => pan(0.5));
  control("whole", reset);
  document.getElementById("fit").addEventListener("change", (event) => { fit = event.target.checked; refresh(); });
  document.getElementById("unit").textContent = unit;
  inputs.forEach((input) => input.addEventListener("change", () => {
    const [from, to] = inputs.map((i) => Number(i.value) / scale);
    if (from < to) show(from, to); else show(shown[0], shown[1]);
  }));
  const filter = document.getElementById("filter");
  if (filter) {
    filter.addEventListener("input", () => {
      const wanted = filter.value.toLowerCase();
      document.querySelectorAll("#parameters tbody tr").forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(wanted); });
    });
  }

  data.panels.forEach((p) => {
    if (p.kind === "rate") p.counts = new Uint32Array(bytes(p.counts));
    make(p);
  });
  document.getElementById("plots").hidden = panels.length === 0;
  show(...(asked() || whole), true);
  all();
  body.dataset.panels = String(panels.length);
  addEventListener("hashchange", () => { const window = asked(); if (window) show(...window, true); });
  addEventListener("scroll", soon, { passive: true });
  addEventListener("resize", refresh);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((part) => { part.open = true; });
    sharp = 2;
    all();
  });
  addEventListener("afterprint", () => { sharp = 0; all(); });
})();
