/**
 * Small charts of the last minutes, drawn by uPlot. Their element is not part of the templates, so
 * lit does not change it.
 */
import uPlot from 'uplot';
import { formatCount } from './format.js';
import { activityNames, type Activity, type ActivityName } from './overview.js';

const titles: Readonly<Record<ActivityName, string>> = {
  requests: 'requests/s',
  written: 'writes/s',
  events: 'events to watches/s',
  refused: 'refused/s',
};
const heightPixels = 90;
const axisPixels = 44;
const msPerSecond = 1_000;

type Chart = Readonly<{ plot: uPlot; container: HTMLElement; value: HTMLElement }>;

export class Charts {
  readonly element = document.createElement('div');
  readonly #charts: ReadonlyMap<ActivityName, Chart>;

  constructor() {
    this.element.className = 'charts';
    this.#charts = new Map(activityNames.map((name) => [name, this.#draw(name)]));
    const resized = new ResizeObserver(() => {
      for (const { plot, container } of this.#charts.values()) plot.setSize({ width: widthOf(container), height: heightPixels });
    });
    resized.observe(this.element);
    // uPlot draws colours onto a canvas, so a change of theme needs a redraw.
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      for (const { plot } of this.#charts.values()) plot.redraw();
    });
  }

  show({ intervalMs, perSecond }: Activity): void {
    for (const [name, { plot, value }] of this.#charts) {
      const rates = perSecond[name];
      const agoSeconds = rates.map((_, at) => ((at + 1 - rates.length) * intervalMs) / msPerSecond);
      plot.setData([agoSeconds, [...rates]]);
      value.textContent = formatCount(rates.at(-1) ?? 0);
    }
  }

  #draw(name: ActivityName): Chart {
    const figure = document.createElement('figure');
    const container = document.createElement('div');
    const caption = document.createElement('figcaption');
    const value = document.createElement('strong');
    caption.append(value, ` ${titles[name]}`);
    figure.append(caption, container);
    this.element.append(figure);
    const plot = new uPlot(
      {
        width: widthOf(container),
        height: heightPixels,
        legend: { show: false },
        cursor: { show: false },
        scales: { x: { time: false }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
        axes: [
          { show: false },
          {
            size: axisPixels,
            stroke: () => colour('--quiet'),
            grid: { stroke: () => colour('--line') },
            ticks: { show: false },
            values: (_, splits) => splits.map(short),
          },
        ],
        series: [{}, { stroke: () => colour('--accent'), fill: () => colour('--tint'), width: 1.5, points: { show: false } }],
      },
      [[], []],
      container,
    );
    return { plot, container, value };
  }
}

function widthOf(container: HTMLElement): number {
  return Math.max(120, container.clientWidth);
}

function colour(property: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(property);
}

/** Formats 12,000 as 12k. */
function short(value: number): string {
  return value >= msPerSecond ? `${value / msPerSecond}k` : String(Math.round(value * 10) / 10);
}
