/**
 * Small wrong changes of a compiled module, of the kinds that people make: a bound that is off by
 * one, an inverted condition, a missing call. A test of the module should fail under each. Some
 * change nothing that matters, and no test can fail under those.
 */
import { parse, type AnyNode } from 'acorn';
import { full } from 'acorn-walk';

/** `from` and `to` are offsets in the text, both on one line. */
export type Mutation = Readonly<{ from: number; to: number; after: string }>;

const otherOperators = new Map([
  ['<', '<='],
  ['<=', '<'],
  ['>', '>='],
  ['>=', '>'],
  ['===', '!=='],
  ['!==', '==='],
  ['&&', '||'],
  ['||', '&&'],
  ['+', '-'],
  ['-', '+'],
]);

/** All mutations of a module, in the order of its text. */
export function mutationsOf(text: string): readonly Mutation[] {
  const found: Mutation[] = [];
  full(parse(text, { ecmaVersion: 'latest', sourceType: 'module', allowHashBang: true }), (node) => {
    found.push(...mutationsOfNode(text, node as AnyNode));
  });
  return found.filter(({ from, to }) => !text.slice(from, to).includes('\n')).toSorted((one, other) => one.from - other.from);
}

export function mutated(text: string, { from, to, after }: Mutation): string {
  return text.slice(0, from) + after + text.slice(to);
}

function mutationsOfNode(text: string, node: AnyNode): readonly Mutation[] {
  const { start: from, end: to } = node;
  switch (node.type) {
    case 'BinaryExpression':
    case 'LogicalExpression': {
      const after = otherOperators.get(node.operator);
      const at = text.indexOf(node.operator, node.left.end);
      return after === undefined ? [] : [{ from: at, to: at + node.operator.length, after }];
    }
    case 'IfStatement':
    case 'ConditionalExpression':
      return [{ from: node.test.start, to: node.test.end, after: `!(${text.slice(node.test.start, node.test.end)})` }];
    case 'UnaryExpression':
      return node.operator === '!' ? [{ from, to: from + 1, after: '' }] : [];
    case 'Literal':
      if (typeof node.value === 'boolean') return [{ from, to, after: String(!node.value) }];
      return typeof node.value === 'number' ? [{ from, to, after: String(node.value + 1) }] : [];
    case 'ReturnStatement':
      return node.argument ? [{ from, to, after: 'return;' }] : [];
    case 'ContinueStatement':
    case 'BreakStatement':
      return [{ from, to, after: ';' }];
    case 'ExpressionStatement': {
      const { expression } = node;
      const missing = ['CallExpression', 'AssignmentExpression', 'UpdateExpression', 'AwaitExpression'].includes(expression.type);
      return [
        ...(missing ? [{ from, to, after: ';' }] : []),
        ...(expression.type === 'AwaitExpression' ? [{ from, to, after: `void ${text.slice(expression.argument.start, to)}` }] : []),
      ];
    }
    default:
      return [];
  }
}
