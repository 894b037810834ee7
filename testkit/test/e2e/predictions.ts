/** Makes patches that solve nothing, predictions with one patch for many instances, and search terms from patches. */

/** A patch that is unrelated to any bug. */
export const NEW_FILE =
  'diff --git a/x.txt b/x.txt\nnew file mode 100644\n--- /dev/null\n+++ b/x.txt\n@@ -0,0 +1 @@\n+x\n';

/** Returns a patch with context that the file does not have. */
export const misfit = (file: string): string =>
  `diff --git a/${file} b/${file}\n--- a/${file}\n+++ b/${file}\n@@ -1 +1 @@\n-not there\n+x\n`;

export const predictionsOf = (ids: readonly string[], model_patch: string | null) =>
  ids.map((instance_id) => ({ instance_id, model_name_or_path: 'm', model_patch }));

/** Returns the longest line that a patch adds (`+`) or removes (`-`). */
export function longestLine(patch: string, sign: '-' | '+'): string {
  const lines = patch
    .split('\n')
    .filter((line) => line.startsWith(sign) && !line.startsWith(sign.repeat(3)))
    .map((line) => line.slice(1).trim());
  const [longest] = lines.sort((a, b) => b.length - a.length);
  if (!longest) throw new Error(`the patch has no line with ${sign}`);
  return longest;
}
