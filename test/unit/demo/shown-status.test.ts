import { test } from '../../support/test.js';
import { clipped, refusalsExplained } from '../../demo/shown-status.js';

test('a line is cut if a terminal shows it, and kept whole otherwise', (t) => {
  const line = 'x'.repeat(500);

  t.is(clipped(line, true).length, 121);
  t.is(clipped(line, false), line);
});

test('a status with refused objects gets an explanation, and no other status does', (t) => {
  t.regex(refusalsExplained(['  received: up to 7; 1 of 1 slice current; 1 object refused here']) ?? '', /came before its LogicalCluster/);
  t.is(refusalsExplained(['  received: up to 7; 1 of 1 slice current', '  sending: 1 slice not accepted in full']), undefined);
});
