/**
 * A program that holds as many ports as its argument says, reports them, and ends when its parent
 * says so.
 */
import { freePorts } from './free-ports.js';

process.once('message', () => process.disconnect());
process.send?.(await freePorts(Number(process.argv[2])));
