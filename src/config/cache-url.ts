/** Parses the URL of a cache: https, without a path. */

/** The origin of the URL; undefined for any other text. */
export function parseCacheUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, origin, pathname, search, hash, username, password } = new URL(text);
  const isBare = pathname === '/' && search === '' && hash === '' && username === '' && password === '';
  return protocol === 'https:' && isBare ? origin : undefined;
}

/** The origins without duplicates. Undefined if one of the texts is no such URL. */
export function parseCacheUrls(texts: readonly string[]): readonly string[] | undefined {
  const urls = texts.map(parseCacheUrl);
  const known = urls.filter((url) => url !== undefined);
  return known.length === urls.length ? [...new Set(known)] : undefined;
}
