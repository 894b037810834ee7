/** Words of a shell's command line. */

/** The text as one word, whatever is in it but NUL, which no command line can hold. */
export const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
