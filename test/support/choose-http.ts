/**
 * Sets TEST_HTTP to 1 or 2 for a file of tests that has a worker to itself. An entry file sets it
 * for the files that it imports. AVA requires this module first.
 */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { findProjectRoot } from '../house/sources.js';
import { httpOfFile } from './http-of-file.js';

const file = relative(`${findProjectRoot()}/build`, fileURLToPath(test.meta.file));
process.env['TEST_HTTP'] = httpOfFile(file, { asked: process.env['TEST_HTTP'] ?? '1', commit: process.env['TEST_COMMIT'] ?? '' });
