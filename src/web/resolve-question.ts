/**
 * The query of `GET /services/cache/resolve`: exactly one `path`. If its text is not a path, the
 * answer says so.
 */
import { badRequest } from '../domain/errors.js';
import { parsed, refused, type Parsed } from '../domain/parsed.js';

export function parseResolveQuestion(query: URLSearchParams): Parsed<string> {
  const [path, ...others] = query.getAll('path');
  if (path === undefined || others.length > 0 || query.size > 1)
    return refused(badRequest('one path is required, and no other parameter is known'));
  return parsed(path);
}
