/** What a row of the change log tells: the column `kind`. */
export const put = 1;
/** The key holds nothing from here on. Outlives what it deleted, so that readers can still be told. */
export const tombstone = 2;
