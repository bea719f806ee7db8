#pragma once

namespace coconet {

/// The style of all pages. Colours of series are Okabe and Ito's, which people with any colour
/// vision tell apart, darkened on light ground so that each has a contrast of 3 and more.
inline constexpr char kPageStyle[] = R"css(
:root {
  color-scheme: light dark;
  --ground: #f6f7f9; --card: #ffffff; --ink: #1a1d21; --muted: #565d66; --line: #d5d9df;
  --accent: #0b62c4; --good: #0a6b4b; --good-ground: #e2f4ec; --base-ground: #eceef1;
  --s0: #0072b2; --s1: #d55e00; --s2: #00825f; --s3: #b8558e; --s4: #a06b00; --s5: #2b84b8;
  --s6: #3d434a; --s7: #7a5195;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171b; --card: #1c2025; --ink: #e8eaed; --muted: #a8b0ba; --line: #383f48;
    --accent: #7db7ff; --good: #6fdcb2; --good-ground: #173a2e; --base-ground: #2b3138;
    --s0: #56b4e9; --s1: #ff8c42; --s2: #2fc79a; --s3: #e39ac4; --s4: #f0c04a; --s5: #9ad0f0;
    --s6: #c9ced6; --s7: #c3a1e0;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Roboto, sans-serif;
}
header, main, footer { max-width: 1500px; margin: 0 auto; padding: 0 clamp(12px, 3vw, 32px); }
header { padding-top: 24px; }
footer { padding-bottom: 32px; color: var(--muted); }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 36px 0 8px; }
h3 { font-size: 1.05rem; margin: 0 0 4px; overflow-wrap: anywhere; }
h4 { font-size: .95rem; margin: 20px 0 6px; }
p { margin: 4px 0; overflow-wrap: anywhere; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 2px; }
.skip { position: absolute; left: -999px; }
.skip:focus { position: static; }
.muted, .note { color: var(--muted); }
.note { font-size: .9rem; max-width: 75ch; }
nav ul {
  list-style: none; display: flex; flex-wrap: wrap; gap: 4px 18px; padding: 0; margin: 12px 0;
}
.card {
  background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: clamp(10px, 2vw, 20px); margin: 12px 0; min-width: 0;
}
.scrolls { overflow-x: auto; max-width: 100%; margin: 8px 0; }
table { border-collapse: collapse; font-size: .9rem; }
th, td {
  text-align: left; vertical-align: top; padding: 5px 12px 5px 0;
  border-bottom: 1px solid var(--line);
}
th { font-weight: 600; white-space: nowrap; }
td { max-width: 60ch; overflow-wrap: break-word; min-width: 4ch; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.sort { all: unset; cursor: pointer; font-weight: 600; }
.sort:hover { text-decoration: underline; }
.sort:focus-visible { outline: 3px solid var(--accent); }
th[aria-sort="ascending"] .sort::after { content: " \2191"; }
th[aria-sort="descending"] .sort::after { content: " \2193"; }
input[type="search"] {
  font: inherit; color: inherit; background: var(--card); border: 1px solid var(--muted);
  border-radius: 6px; padding: 6px 10px; width: min(100%, 28rem); display: block;
}
.tool {
  font: inherit; color: inherit; background: var(--card); border: 1px solid var(--muted);
  border-radius: 6px; padding: 4px 12px; cursor: pointer; min-height: 32px;
}
code, pre, .name b { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
code { font-size: .9em; overflow-wrap: anywhere; }
pre { font-size: .82rem; overflow-x: auto; margin: 8px 0; max-height: 28rem; }
td > code { display: block; min-width: 13rem; }
.nowrap { white-space: nowrap; }
details > summary { cursor: pointer; color: var(--accent); margin: 8px 0; }
details.long { display: inline; }
details.long > summary { margin: 0; color: inherit; overflow-wrap: anywhere; }
details.long > summary::after {
  content: " (all of it)"; color: var(--accent); font-family: system-ui, sans-serif;
}
details.long[open] > summary::after { content: " (less)"; }
.facts {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr));
  gap: 8px 24px; margin: 10px 0;
}
.facts dt { color: var(--muted); font-size: .85rem; }
.facts dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.facts .big { font-size: 1.25rem; font-weight: 600; }
.badge {
  display: inline-block; font: 600 .75rem/1.5 system-ui, sans-serif; border-radius: 10px;
  padding: 0 8px; margin-left: 6px; background: var(--base-ground); border: 1px solid var(--muted);
}
.badge.best { background: var(--good-ground); color: var(--good); border-color: var(--good); }
.rows { list-style: none; margin: 8px 0; padding: 0; }
.row, .axis {
  display: grid; gap: 2px 20px; align-items: center; padding: 5px 0;
  grid-template-columns: minmax(0, 5fr) minmax(220px, 6fr) 12.5rem minmax(0, 4fr);
}
.row { border-top: 1px solid var(--line); }
.row .name { overflow-wrap: anywhere; }
.row .name b { font-size: .86rem; }
.row .name small { color: var(--muted); display: block; overflow-wrap: anywhere; }
.row .value { font-variant-numeric: tabular-nums; font-size: .9rem; }
.row .why { font-size: .9rem; color: var(--muted); overflow-wrap: anywhere; }
.axis > :first-child { grid-column: 2; }
@media (max-width: 900px) {
  .row, .axis { grid-template-columns: minmax(0, 1fr); }
  .axis > :first-child { grid-column: 1; }
  .row { padding: 10px 0; }
}
svg { display: block; width: 100%; overflow: visible; }
svg text { font: 12px system-ui, -apple-system, "DejaVu Sans", sans-serif; fill: var(--muted); }
.strip { padding: 0 22px; min-width: 0; }
.grid { stroke: var(--line); stroke-width: 1; }
.whisker { stroke: var(--s0); stroke-width: 3; stroke-linecap: round; }
.dot { fill: var(--s0); stroke: var(--card); stroke-width: 1.5; }
.best .whisker { stroke: var(--s2); } .best .dot { fill: var(--s2); }
.baseline .whisker { stroke: var(--s6); }
.baseline .dot { fill: var(--card); stroke: var(--s6); stroke-width: 3; }
.guide { stroke: var(--s6); stroke-dasharray: 4 4; stroke-width: 1; }
.plot { margin: 12px 0; padding: 6px 26px 44px 66px; position: relative; max-width: 1100px; }
.plot svg.mark, svg.mark { width: 1px; height: 1px; }
.frame { fill: none; stroke: var(--line); }
.series { fill: none; stroke-width: 2; }
.bar { stroke-width: 1.5; opacity: .75; }
.limit { stroke: var(--muted); stroke-width: 2; stroke-dasharray: 2 4; }
.identity { stroke: var(--muted); stroke-width: 1.5; stroke-dasharray: 6 4; }
.crossing { fill: var(--card); stroke: var(--ink); stroke-width: 2; }
.s0 { stroke: var(--s0); --fill: var(--s0); } .s1 { stroke: var(--s1); --fill: var(--s1); }
.s2 { stroke: var(--s2); --fill: var(--s2); } .s3 { stroke: var(--s3); --fill: var(--s3); }
.s4 { stroke: var(--s4); --fill: var(--s4); } .s5 { stroke: var(--s5); --fill: var(--s5); }
.s6 { stroke: var(--s6); --fill: var(--s6); } .s7 { stroke: var(--s7); --fill: var(--s7); }
.s1.series { stroke-dasharray: 7 3; } .s2.series { stroke-dasharray: 2 3; }
.s3.series { stroke-dasharray: 9 3 2 3; } .s4.series { stroke-dasharray: 12 4; }
.s5.series { stroke-dasharray: 4 2; } .s6.series { stroke-dasharray: 1 4; }
.s7.series { stroke-dasharray: 6 2 1 2 1 2; }
.mark path { fill: var(--fill); stroke: var(--card); stroke-width: 1; }
.cloud path { fill-opacity: .5; }
.legend {
  list-style: none; padding: 0; margin: 8px 0; display: grid; gap: 4px 24px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); font-size: .9rem;
}
.legend li {
  display: grid; grid-template-columns: 40px minmax(0, 1fr); gap: 8px; align-items: center;
  overflow-wrap: anywhere;
}
.legend svg { width: 40px; height: 16px; }
.lanes { min-width: 100%; }
.lane-name { position: sticky; left: 0; display: inline-block; font-weight: 600; font-size: .9rem; }
.task rect { stroke-width: .5; fill: var(--fill); fill-opacity: .22; }
.task.critical rect { stroke-width: 1.5; fill-opacity: .42; }
.task text { fill: var(--ink); stroke: none; font-size: 11px; }
.task svg { overflow: hidden; }
.zoom { display: flex; gap: 8px; flex-wrap: wrap; align-items: center; }
)css";

/// Sorts tables, filters rows, widens lanes, and hides names that do not fit their boxes. Pages can
/// be read without it.
inline constexpr char kPageScript[] = R"js(
'use strict';
for (const button of document.querySelectorAll('.sort')) {
  button.addEventListener('click', () => {
    const head = button.closest('th'), body = head.closest('table').tBodies[0];
    const column = head.cellIndex, up = head.getAttribute('aria-sort') !== 'ascending';
    for (const other of head.parentNode.cells) other.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
    const key = row => row.cells[column].dataset.sort || row.cells[column].textContent;
    const rows = Array.from(body.rows).sort((a, b) => {
      const x = key(a), y = key(b), numbers = x !== '' && y !== '' && !isNaN(x) && !isNaN(y);
      return (up ? 1 : -1) * (numbers ? x - y : x.localeCompare(y));
    });
    body.append(...rows);
  });
}
for (const box of document.querySelectorAll('input[type="search"]')) {
  const rows = document.querySelectorAll('#' + box.dataset.rows + ' tbody tr');
  const shown = document.getElementById(box.dataset.count);
  box.addEventListener('input', () => {
    const words = box.value.toLowerCase();
    let count = 0;
    for (const row of rows) {
      row.hidden = !row.textContent.toLowerCase().includes(words);
      count += !row.hidden;
    }
    shown.textContent = words === '' ? '' : count + ' of ' + rows.length + ' shown';
  });
}
const fitNames = () => {
  for (const task of document.querySelectorAll('.task')) {
    const text = task.querySelector('text');
    const room = task.querySelector('rect').getBoundingClientRect().width - 6;
    text.style.display = '';
    if (room < 8 || text.getComputedTextLength() > room) text.style.display = 'none';
  }
};
let zoom = 1;
for (const button of document.querySelectorAll('[data-zoom]')) {
  button.addEventListener('click', () => {
    zoom = button.dataset.zoom === '0' ? 1 : Math.min(512, Math.max(1, zoom * button.dataset.zoom));
    for (const lanes of document.querySelectorAll('.lanes')) lanes.style.width = 100 * zoom + '%';
    document.getElementById('zoomed').textContent = zoom + ' times as wide';
    fitNames();
  });
}
if (document.querySelector('.task')) {
  fitNames();
  addEventListener('resize', fitNames);
}
const openTarget = () => {
  const id = decodeURIComponent(location.hash.slice(1));
  const target = id && document.getElementById(id);
  if (target && target.tagName === 'DETAILS') target.open = true;
};
addEventListener('hashchange', openTarget);
openTarget();
)js";

}  // namespace coconet
