/** Takes as many ports as it is told, tells which, and holds them until it is told to end. */
import { freePorts } from './free-ports.js';

process.once('message', () => process.disconnect());
process.send?.(await freePorts(Number(process.argv[2])));
