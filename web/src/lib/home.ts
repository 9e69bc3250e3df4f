/** countLimit is the number up to which the portal counts tickets. */
const countLimit = 1000;

/** isAtLeast reports whether there may be more tickets than the portal counted. */
export const isAtLeast = (count: number | undefined): boolean => count !== undefined && count >= countLimit;
