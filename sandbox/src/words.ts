/** The text as one word of a shell's command line. It must not contain NUL. */
export const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
