/** Patches that solve nothing, predictions that give one patch to many instances, and what is looked for in a patch. */

/** Has nothing to do with any bug. */
export const NEW_FILE =
  'diff --git a/x.txt b/x.txt\nnew file mode 100644\n--- /dev/null\n+++ b/x.txt\n@@ -0,0 +1 @@\n+x\n';

/** A patch of lines that the file does not have. */
export const misfit = (file: string): string =>
  `diff --git a/${file} b/${file}\n--- a/${file}\n+++ b/${file}\n@@ -1 +1 @@\n-not there\n+x\n`;

export const predictionsOf = (ids: readonly string[], model_patch: string | null) =>
  ids.map((instance_id) => ({ instance_id, model_name_or_path: 'm', model_patch }));

/** The longest of the lines that a patch adds or removes. */
export function longestLine(patch: string, sign: '-' | '+'): string {
  const lines = patch
    .split('\n')
    .filter((line) => line.startsWith(sign) && !line.startsWith(sign.repeat(3)))
    .map((line) => line.slice(1).trim());
  const [longest] = lines.sort((a, b) => b.length - a.length);
  if (!longest) throw new Error(`the patch has no line with ${sign}`);
  return longest;
}

/** The text as one word of a shell. */
export const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
