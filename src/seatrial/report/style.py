"""The page's style sheet: one palette for light, dark and print; nothing is said by colour alone."""

from __future__ import annotations

from typing import Final

ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' "
    "rx='7' fill='%230b4f6c'/%3E%3Cpath d='M6 20h20M16 6v14M16 8l8 10h-8z' stroke='white' stroke-width='2.4' "
    "fill='none' stroke-linejoin='round'/%3E%3Cpath d='M6 25c3 2 5 2 7 0s4-2 6 0 4 2 7 0' stroke='white' "
    "stroke-width='2.4' fill='none'/%3E%3C/svg%3E"
)

_PALETTE: Final = """
:root{color-scheme:light dark;
--paper:#fbfaf7;--card:#ffffff;--ink:#14212b;--soft:#4a5a66;--line:#d9dcd8;--stripe:#f3f4f1;--grid:#e3e6e2;
--sea:#0b4f6c;--sea-mark:#12688c;--band:#5f7280;--range:#cdd6da;--zero:#14212b;--other:#a33b12;
--good:#146c43;--good-bg:#e4f3ea;--bad:#9d1c1c;--bad-bg:#fbe9e7;--mild:#7a4b00;--mild-bg:#fdf1d8;--calm:#0b4f6c;
--calm-bg:#e3f0f6;--focus:#b35900;--heat:18,104,140}
@media (prefers-color-scheme:dark){:root{
--paper:#0d161d;--card:#131f28;--ink:#e8eef1;--soft:#a9b8c2;--line:#2b3a45;--stripe:#172530;--grid:#24333e;
--sea:#8ad1ef;--sea-mark:#5cbce4;--band:#9fb2be;--range:#33454f;--zero:#e8eef1;--other:#ffa477;
--good:#7fd6a4;--good-bg:#10261a;--bad:#ff9d94;--bad-bg:#2c1413;--mild:#f5c66a;--mild-bg:#261e0e;--calm:#8ad1ef;
--calm-bg:#0f2733;--focus:#ffb454;--heat:92,188,228}}
"""

_TEXT: Final = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-behavior:smooth}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,
"Noto Sans","Liberation Sans",Arial,sans-serif;overflow-wrap:anywhere}
h1,h2,h3,h4{line-height:1.2;margin:0;text-wrap:balance;font-weight:650;letter-spacing:-.012em}
h1{font-size:clamp(1.65rem,1.1rem + 2.4vw,2.6rem)}
h2{font-size:clamp(1.25rem,1.05rem + .8vw,1.6rem)}
h3{font-size:1.1rem}
h4{font-size:.95rem;letter-spacing:0}
p{margin:.6em 0;max-width:68ch}
a{color:var(--sea);text-underline-offset:.18em}
a:focus-visible,summary:focus-visible,[tabindex]:focus-visible{outline:3px solid var(--focus);outline-offset:2px;
border-radius:3px}
ul,ol{padding-left:1.25em;margin:.6em 0}
li{margin:.3em 0;max-width:68ch}
.skip{position:absolute;left:-999px}
.skip:focus{left:1rem;top:.5rem;background:var(--card);padding:.5rem 1rem;z-index:2}
.eyebrow{text-transform:uppercase;letter-spacing:.11em;font-size:.78rem;font-weight:650;color:var(--sea);
margin:0 0 .5rem}
.soft,.notes{color:var(--soft)}
.notes{font-size:.92rem;list-style:none;padding:0}
.notes li{display:flex;gap:.5em;max-width:80ch}
.notes li::before{content:"†";color:var(--soft)}
"""

_LAYOUT: Final = """
.page{max-width:1180px;margin:0 auto;padding:0 16px 4rem}
.top{padding:2.4rem 0 1.6rem}
.facts{display:flex;flex-wrap:wrap;gap:.4rem .5rem;margin:1rem 0 0;padding:0;list-style:none}
.facts li{margin:0;padding:.2rem .7rem;border:1px solid var(--line);border-radius:99px;background:var(--card);
font-size:.88rem;color:var(--soft)}
.facts b{color:var(--ink);font-weight:600}
.toc{font-size:.92rem;border-block:1px solid var(--line);padding:.6rem 0;margin-bottom:1rem}
.toc ul{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;margin:0;padding:0}
.toc li{margin:0}
.toc a{display:inline-block;padding:.2rem 0;text-decoration:none}
.toc a:hover{text-decoration:underline}
section.part{padding:1.9rem 0 .4rem;scroll-margin-top:.5rem}
section.part+section.part{border-top:1px solid var(--line);margin-top:1.4rem}
section.sub{margin-top:1.4rem}
.answer p{font-size:1.08rem}
.answer p:first-of-type{font-size:clamp(1.15rem,1.02rem + .6vw,1.35rem);line-height:1.42;font-weight:560;max-width:60ch}
@media (min-width:1120px){.cols{display:grid;grid-template-columns:176px minmax(0,1fr);gap:44px}
.toc{border:0;margin:0}.toc nav,.toc ul{position:sticky;top:1.2rem}.toc ul{display:block;padding-top:2rem}
.toc li{margin:.1rem 0}}
.verdict{border-radius:14px;padding:1.3rem clamp(1rem,2.4vw,1.8rem) 1.2rem!important;background:var(--tone-bg);
border:1px solid var(--line);border-left:8px solid var(--tone)}
.verdict+section.part{border-top:0!important}
.verdict>p:first-of-type{font-size:1.08rem}
.v-randomised{--tone:var(--good);--tone-bg:var(--good-bg)}
.v-crossed{--tone:var(--calm);--tone-bg:var(--calm-bg)}
.v-observational{--tone:var(--mild);--tone-bg:var(--mild-bg)}
.v-not_identified{--tone:var(--bad);--tone-bg:var(--bad-bg)}
.ladder{list-style:none;display:grid;grid-template-columns:repeat(4,minmax(0,1fr));gap:6px;padding:0;margin:1rem 0;
font-size:.86rem}
.ladder li{margin:0;padding:.5rem .6rem;border:1px solid var(--line);border-top:5px solid var(--line);border-radius:6px;
background:var(--card);color:var(--soft)}
.ladder b{display:block;font-weight:600}
.ladder [aria-current]{border-color:var(--tone);border-width:2px;border-top-width:5px;color:var(--ink)}
.ladder [aria-current] b::before{content:"▸ "}
@media (max-width:640px){.ladder{grid-template-columns:1fr 1fr}}
.checks{list-style:none;padding:0;margin:1rem 0;display:grid;gap:6px}
.checks li{max-width:none;margin:0;display:grid;grid-template-columns:7.4rem minmax(0,1fr);gap:.2rem .9rem;
background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.55rem .8rem}
.checks .state{font-weight:650;font-size:.9rem;padding-top:.1rem}
.checks .yes{color:var(--good)}.checks .no{color:var(--bad)}.checks .na{color:var(--soft)}
.checks p{margin:.1em 0 0;max-width:80ch;font-size:.95rem}
.checks code{font-size:.88rem;color:var(--soft)}
@media (max-width:480px){.checks li{grid-template-columns:1fr}}
.warn{border-left:4px solid var(--mild);background:var(--mild-bg);padding:.5rem .8rem;border-radius:4px;list-style:none;
max-width:80ch;margin-left:-1.25em}
.caveats{padding:0;list-style:none}
.caveats li{display:flex;gap:.6em;max-width:80ch}
.caveats li::before{content:"!";flex:none;width:1.35em;height:1.35em;line-height:1.35em;margin-top:.1em;
text-align:center;border-radius:50%;background:var(--tone);color:var(--tone-bg);font-weight:700}
footer{margin-top:3rem;border-top:1px solid var(--line);padding-top:1rem;font-size:.9rem;color:var(--soft)}
"""

_CHARTS: Final = """
figure{margin:1.2rem 0;padding:0}
figcaption{font-weight:600;margin:0 0 .3rem}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.3rem;font-size:.88rem;color:var(--soft);margin:0 0 .5rem;padding:0;
list-style:none}
.legend li{margin:0;display:flex;gap:.45rem;align-items:center}
.glyph{flex:none}
.chart{display:block;width:100%;height:auto}
.wide .chart{max-width:1000px}
.narrow{display:none}
@media (max-width:700px){.wide{display:none}.narrow{display:block}.narrow .chart{max-width:520px}}
.multiples{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(280px,100%),1fr));gap:1.4rem 2rem}
.multiple{min-width:0}
.multiple h3,.multiple h4{margin-bottom:.3rem;font-size:.95rem;letter-spacing:0}
.chart text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",Arial,sans-serif;
fill:var(--ink);font-variant-numeric:tabular-nums}
.multiple text,.narrow text{paint-order:stroke;stroke:var(--paper);stroke-width:3px}
.chart .label{font-weight:600}
.chart .tick{font-size:12px;fill:var(--soft)}
.chart .quiet{fill:var(--soft);font-style:italic}
.stripe{fill:var(--stripe)}
.grid{stroke:var(--grid);stroke-width:1}
.axis{stroke:var(--band);stroke-width:1}
.zero{stroke:var(--zero);stroke-width:1.5;stroke-dasharray:4 3}
.interval{stroke:var(--sea-mark);stroke-width:5;stroke-linecap:butt}
.ranks{stroke:var(--sea-mark);stroke-width:5;stroke-linecap:round;opacity:.55}
.band{stroke:var(--band);stroke-width:1.5}
.range{fill:var(--range);stroke:var(--band);stroke-width:1}
.curve{fill:none;stroke:var(--sea-mark);stroke-width:2.5}
.dot{fill:var(--sea);stroke:var(--card);stroke-width:2}
.hollow{fill:var(--card);stroke:var(--sea);stroke-width:2}
.quiet{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}
.diamond{fill:none;stroke:var(--other);stroke-width:2.2}
"""

_TABLES: Final = """
.scroll{overflow-x:auto;margin:.8rem 0;border:1px solid var(--line);border-radius:8px;background:var(--card)}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.55rem .75rem;font-size:.86rem;color:var(--soft);font-weight:600}
th,td{overflow-wrap:break-word;padding:.45rem .7rem;text-align:left;vertical-align:top;border-top:1px solid var(--line)}
thead th{font-size:.82rem;line-height:1.3;vertical-align:bottom;color:var(--soft);font-weight:600}
tbody th{font-weight:600;min-width:10rem;max-width:17rem;overflow-wrap:anywhere}
td{max-width:34rem}
td bdi{overflow-wrap:anywhere}td:has(bdi){min-width:6rem}
.r{text-align:right}
td.r{white-space:nowrap}
td .line{display:block;color:var(--soft)}
td.none{color:var(--soft);font-style:italic}
tbody tr:nth-child(odd){background:var(--stripe)}
details{margin:.7rem 0}
summary{cursor:pointer;font-weight:600;color:var(--sea);padding:.3rem 0;width:fit-content;max-width:100%}
details.section>summary{font-size:1.05rem}
pre{max-height:28rem;overflow:auto;margin:.6rem 0;padding:.9rem;border:1px solid var(--line);border-radius:8px;
background:var(--card);font-size:.8rem;line-height:1.45;white-space:pre;overflow-wrap:normal}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
"""

_HEAT: Final = "\n".join(f"td.h{i}{{background:rgba(var(--heat),{i * 0.045:.3f})}}" for i in range(11))

_PRINT: Final = """
@media print{:root{--paper:#fff;--card:#fff;--ink:#000;--soft:#333;--line:#bbb;--stripe:#f4f4f4}
body{font-size:10.5pt}.toc,.skip{display:none}.cols{display:block}.wide{display:block}.narrow{display:none}
.page{max-width:none;padding:0}section.part{break-inside:auto}figure,tr,.checks li{break-inside:avoid}
h2,h3{break-after:avoid}.scroll{overflow:visible;border:0}th,td{padding:.25rem .4rem;font-size:8.5pt}
details::details-content{content-visibility:visible;height:auto}pre{max-height:none;white-space:pre-wrap}
details.json{display:none}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""

CSS: Final = _PALETTE + _TEXT + _LAYOUT + _CHARTS + _TABLES + _HEAT + _PRINT
