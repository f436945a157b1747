/** A table that scrolls sideways if it is wider than the screen. */
import { html, type TemplateResult } from 'lit-html';

/** `isNumber`: the column has numbers. */
export type Heading = Readonly<{ title: string; isNumber?: true }>;

export function tableView(headings: readonly Heading[], rows: unknown): TemplateResult {
  return html`
    <div class="wide">
      <table>
        <thead>
          <tr>
            ${headings.map(({ title, isNumber }) => html`<th class=${isNumber ? 'number' : ''}>${title}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows}
        </tbody>
      </table>
    </div>
  `;
}

export function numbers(...titles: readonly string[]): readonly Heading[] {
  return titles.map((title) => ({ title, isNumber: true }));
}
