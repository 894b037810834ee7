/**
 * Rebuilds the patch of an R2E-Gym row from `parsed_commit_content`, by the rules of agentica-project/R2E-Gym 353348a. So that `git apply`
 * accepts the patch, lines beyond the length of a hunk are dropped, and a hunk that ends without context gets context from the old file.
 * Binary, renamed and copied files are refused.
 */
import { z } from 'zod';

const Range = z.object({
  start: z.number().int().nonnegative(),
  length: z.number().int().nonnegative().nullish(),
});
const Line = z.object({ content: z.string(), type: z.enum(['context', 'added', 'deleted', 'note']) });
const Hunk = z.object({
  descriptor: z.object({ old_range: Range, new_range: Range, section: z.string().nullish() }),
  line_group: z.object({ all_lines: z.array(Line) }),
});
const Path = z.object({ path: z.string().min(1) });
const FileDiff = z.object({
  old_file_content: z.string().nullish(),
  header: z.object({ file: Path, misc_line: z.string().nullish() }),
  index_line: z
    .object({ old_commit_hash: z.string(), new_commit_hash: z.string(), mode: z.string().nullish() })
    .nullish(),
  is_binary_file: z.boolean().default(false),
  minus_file: Path.nullish(),
  plus_file: Path.nullish(),
  hunks: z.array(Hunk).default([]),
});
type FileDiff = z.infer<typeof FileDiff>;
type Hunk = z.infer<typeof Hunk>;
type Line = z.infer<typeof Line>;
const ParsedCommit = z.object({ file_diffs: z.array(FileDiff) });

/** Thrown for content from which no patch can be made; the message names the reason and the file. */
export class ParsedCommitError extends Error {
  override readonly name = 'ParsedCommitError';
}

export type CommitPart = 'all_files' | 'all_python' | 'non_test_python' | 'test_python';

/**
 * Returns the patch of the files in `part`; '' if the commit changes none of them.
 *
 * @throws ParsedCommitError for text that is no parsed commit, and for binary and renamed files in `part`
 */
export function patchOfParsedCommit(content: string, part: CommitPart): string {
  const files = parse(content).filter((file) => isPart(file.header.file.path, part));
  return files.map(renderFile).join('');
}

function parse(content: string): FileDiff[] {
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch (error) {
    throw new ParsedCommitError(`is not JSON (${(error as Error).message})`, { cause: error });
  }
  const parsed = ParsedCommit.safeParse(value);
  if (parsed.success) return parsed.data.file_diffs;
  const issue = parsed.error.issues[0];
  throw new ParsedCommitError(`${issue?.path.join('.') || 'the content'}: ${issue?.message ?? 'is invalid'}`);
}

function isPart(path: string, part: CommitPart): boolean {
  if (part === 'all_files') return true;
  return path.endsWith('.py') && (part === 'all_python' || isTestPath(path) === (part === 'test_python'));
}

/** Whether the path is a test file by R2E-Gym's definition. */
function isTestPath(path: string): boolean {
  const names = path.split('/');
  const folders = names.slice(0, -1);
  return (
    path.endsWith('_test.py') ||
    path.startsWith('test_') ||
    names.at(-1)?.startsWith('test_') === true ||
    folders.some((name) => ['tests', 'Tests', 'test', 'Test'].includes(name))
  );
}

const RENAME = /^(?:similarity index|rename |copy )/m;

function renderFile(file: FileDiff): string {
  const { path } = file.header.file;
  const misc = file.header.misc_line ?? '';
  if (/[\n\0]/.test(path))
    throw new ParsedCommitError(`${JSON.stringify(path)}: a line end in a path is not supported`);
  if (file.is_binary_file) throw new ParsedCommitError(`${path}: a binary file is not supported`);
  if (RENAME.test(misc)) throw new ParsedCommitError(`${path}: a renamed or copied file is not supported`);
  const lines = [`diff --git a/${path} b/${path}`];
  if (misc !== '') lines.push(misc);
  const index = file.index_line;
  if (index)
    lines.push(
      `index ${index.old_commit_hash}..${index.new_commit_hash}${index.mode ? ` ${index.mode}` : ''}`,
    );
  if (file.minus_file && file.plus_file) {
    lines.push(`--- ${file.minus_file.path}`, `+++ ${file.plus_file.path}`);
  } else if (file.hunks.length > 0)
    throw new ParsedCommitError(`${path}: hunks without the names of its files`);
  const hunks = file.hunks.map((hunk) => ({ ...hunk, line_group: { all_lines: announced(hunk, path) } }));
  for (const hunk of withContext(hunks, file.old_file_content)) lines.push(...renderHunk(hunk));
  return `${lines.join('\n')}\n`;
}

/** Returns as many lines of a hunk as its header announces, with notes such as `No newline at end of file`. Drops later lines. */
function announced(hunk: Hunk, path: string): Line[] {
  let before = hunk.descriptor.old_range.length ?? 1;
  let after = hunk.descriptor.new_range.length ?? 1;
  const lines: Line[] = [];
  for (const line of hunk.line_group.all_lines) {
    if (line.type !== 'note') {
      if (before === 0 && after === 0) break;
      if (line.type !== 'added') before--;
      if (line.type !== 'deleted') after--;
    }
    lines.push(line);
  }
  if (before !== 0 || after !== 0)
    throw new ParsedCommitError(`${path}: a hunk has fewer lines than it announces`);
  return lines;
}

const MARKS: Record<Line['type'], string> = { context: ' ', added: '+', deleted: '-', note: '\\ ' };

function renderHunk({ descriptor, line_group }: Hunk): string[] {
  const range = ({ start, length }: z.infer<typeof Range>): string =>
    length === null || length === undefined ? String(start) : `${start},${length}`;
  const section = descriptor.section ? ` ${descriptor.section}` : '';
  const head = `@@ -${range(descriptor.old_range)} +${range(descriptor.new_range)} @@${section}`;
  return [head, ...line_group.all_lines.map(({ content, type }) => MARKS[type] + content)];
}

const CONTEXT = 3;

/** Appends context from the old file to a hunk that ends without context, because `git apply` refuses such a hunk. */
function withContext(hunks: readonly Hunk[], oldContent: string | null | undefined): Hunk[] {
  if (typeof oldContent !== 'string' || oldContent === '') return [...hunks];
  const old = oldContent.split('\n');
  const ends = oldContent.endsWith('\n');
  if (ends) old.pop();
  return hunks.map((hunk, at) => {
    const from = startOf(hunk) + (hunk.descriptor.old_range.length ?? 1);
    const next = hunks[at + 1];
    const to = Math.min(from + CONTEXT, next ? startOf(next) : old.length, old.length);
    if (hunk.line_group.all_lines.at(-1)?.type === 'context' || to <= from) return hunk;
    const context: Line[] = old.slice(from, to).map((content) => ({ content, type: 'context' }));
    if (to === old.length && !ends) context.push({ content: 'No newline at end of file', type: 'note' });
    return {
      descriptor: {
        ...hunk.descriptor,
        old_range: longer(hunk.descriptor.old_range, to - from),
        new_range: longer(hunk.descriptor.new_range, to - from),
      },
      line_group: { all_lines: [...hunk.line_group.all_lines, ...context] },
    };
  });
}

/** Returns the index of the first old line of a hunk. The header of a hunk that only adds lines names the preceding line. */
const startOf = ({ descriptor: { old_range } }: Hunk): number =>
  old_range.length === 0 ? old_range.start : Math.max(old_range.start - 1, 0);

const longer = ({ start, length }: z.infer<typeof Range>, by: number): z.infer<typeof Range> => ({
  start: length === 0 ? start + 1 : start,
  length: (length ?? 1) + by,
});
