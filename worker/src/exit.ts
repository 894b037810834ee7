/** Exit codes of `swefarm-worker`. */
/** 2: usage; 10: an image is missing, changed or failed; 12: any other error; 70: uncaught error; 130: stopped by a signal. */
export const EXIT = { usage: 2, missing: 10, unusable: 12, interrupted: 130 } as const;
