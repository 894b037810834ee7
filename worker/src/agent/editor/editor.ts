/**
 * The tool `str_replace_editor` with the semantics of SWE-agent's tool (tools/edit_anthropic), which follows Anthropic's text editor: what
 * a call shows and what it leaves in the file are the same; the wording of errors is ours. docs/prompts.md lists the differences.
 */
import { type Encoding, type Looked, look, MOST_BYTES, type RunScript, write } from './files.ts';
import { countLines, expandTabs, firstOf, listOf, normalPath } from './pythontext.ts';

/** Most characters of a file that a call shows, before line numbers. */
const MOST_SHOWN = 16_000;
const CLIPPED =
  '<response clipped><NOTE>Only the first part is shown, to save context. Find the lines you need with `grep -n`, then view them with `view_range`.</NOTE>';
/** Lines around an edit that a call shows. */
const AROUND = 4;
/** Most characters of all texts that `undo_edit` can restore in a rollout; the oldest are dropped first. */
const MOST_HISTORY = 32 * 1024 ** 2;

export type EditorOptions = {
  workdir: string;
  /** Whether edits keep tabs and line ends. SWE-agent's tool replaces them in the whole file, and models were trained on that. */
  verbatim: boolean;
  /** Most characters of the list of a folder. */
  mostEntries: number;
};

export type Edited = { ok: boolean; text: string };

type Args = Readonly<Record<string, unknown>>;
type File = { path: string; text: string; encoding: Encoding };

/** A mistake of the model; the message is the observation. */
class Mistake extends Error {}

/** The editor of one rollout. The texts before its edits are in memory, at most 32 Mi characters. */
export class Editor {
  readonly #options: EditorOptions;
  readonly #history: File[] = [];

  constructor(options: EditorOptions) {
    this.#options = options;
  }

  /** Runs one call. Throws the errors of `run`, among them `Interrupted`. */
  async call(args: Args, run: RunScript): Promise<Edited> {
    try {
      return { ok: true, text: (await this.#carryOut(args, run)).replace(/\n+$/, '') };
    } catch (error) {
      if (error instanceof Mistake) return { ok: false, text: firstOf(error.message, MOST_SHOWN) };
      throw error;
    }
  }

  async #carryOut(args: Args, run: RunScript): Promise<string> {
    const { workdir, mostEntries } = this.#options;
    const command = String(args.command);
    const path = normalPath(String(args.path));
    if (!path.startsWith('/'))
      throw new Mistake(
        `${path} is not an absolute path, which begins with \`/\`. Is it ${workdir}/${path}?`,
      );
    const found: Looked = path.includes('\0')
      ? { kind: 'missing', hasParent: false }
      : await look(run, path, mostEntries);
    if (command === 'create') return await this.#create(path, found, args, run);
    if (found.kind === 'folder') return this.#list(path, found, args);
    const file = fileOf(path, found);
    if (!this.#options.verbatim) file.text = file.text.replace(/\r\n?/g, '\n');
    switch (command) {
      case 'view':
        return this.#view(file, args);
      case 'str_replace':
        return await this.#replace(file, args, run);
      case 'insert':
        return await this.#insert(file, args, run);
      case 'undo_edit':
        return await this.#undo(path, run);
      default:
        throw new Mistake(
          `There is no command ${command}; the commands are view, create, str_replace, insert, undo_edit.`,
        );
    }
  }

  #list(path: string, { entries }: Extract<Looked, { kind: 'folder' }>, args: Args): string {
    if (args.command !== 'view')
      throw new Mistake(`${path} is a directory; only \`view\` works on directories.`);
    if (hasRange(args)) throw new Mistake('`view_range` is not allowed when `path` is a directory.');
    const most = this.#options.mostEntries;
    const all = entries.head.toString('utf8');
    const list = entries.tail !== null || all.length > most ? `${firstOf(all, most)}\n${CLIPPED}` : all;
    return `Here's the files and directories up to 2 levels deep in ${path}, excluding hidden items:\n${list}`;
  }

  #view({ path, text }: File, args: Args): string {
    if (!hasRange(args)) return this.#numbered(text, path);
    const lines = text.split('\n');
    const [from, to] = rangeOf(args, lines.length);
    return this.#numbered(lines.slice(from - 1, to).join('\n'), path, from);
  }

  async #create(path: string, found: Looked, args: Args, run: RunScript): Promise<string> {
    if (found.kind !== 'missing')
      throw new Mistake(`${path} exists: \`create\` overwrites nothing. Use \`str_replace\` or \`insert\`.`);
    if (typeof args.file_text !== 'string') throw new Mistake('`create` needs the parameter `file_text`.');
    if (!found.hasParent) throw new Mistake(`The directory of ${path} does not exist. Create it first.`);
    const file: File = { path, encoding: 'utf8', text: args.file_text };
    await save(run, file, file.text);
    this.#remember(file);
    return `File created successfully at: ${path}`;
  }

  async #replace(file: File, args: Args, run: RunScript): Promise<string> {
    const { path, encoding } = file;
    if (typeof args.old_str !== 'string') throw new Mistake('`str_replace` needs the parameter `old_str`.');
    const text = this.#expanded(file.text);
    const old = this.#expanded(args.old_str);
    const fresh = this.#expanded(typeof args.new_str === 'string' ? args.new_str : '');
    const at = onlyIndexOf(old, text, path);
    if (fresh === old) throw new Mistake(`Nothing was replaced: \`new_str\` equals \`old_str\` (${old}).`);
    const edited = text.slice(0, at) + fresh + text.slice(at + old.length);
    await save(run, file, edited);
    this.#remember({ path, encoding, text });
    const line = countOf('\n', text.slice(0, at));
    const from = Math.max(1, line - AROUND);
    const to = Math.min(line + AROUND + countOf('\n', fresh), countLines(edited));
    const shown = edited
      .split('\n')
      .slice(from - 1, to)
      .join('\n');
    return `The file ${path} has been edited. ${this.#numbered(shown, `a snippet of ${path}`, from)}Check that the change is as intended; if not, edit the file again.`;
  }

  async #insert(file: File, args: Args, run: RunScript): Promise<string> {
    const { path, encoding } = file;
    const { insert_line: after, new_str } = args;
    if (typeof after !== 'number' || !Number.isInteger(after))
      throw new Mistake('`insert` needs the parameter `insert_line`, a whole number.');
    if (typeof new_str !== 'string') throw new Mistake('`insert` needs the parameter `new_str`.');
    const text = this.#expanded(file.text);
    const lines = text.split('\n');
    if (after < 0 || after > lines.length)
      throw new Mistake(`\`insert_line\` is ${after}; the file has lines ${listOf([0, lines.length])}.`);
    const added = this.#expanded(new_str).split('\n');
    await save(run, file, [...lines.slice(0, after), ...added, ...lines.slice(after)].join('\n'));
    this.#remember({ path, encoding, text });
    const before = lines.slice(Math.max(0, after - AROUND), after);
    const snippet = [...before, ...added, ...lines.slice(after, after + AROUND)].join('\n');
    const shown = this.#numbered(snippet, 'a snippet of the edited file', Math.max(1, after - AROUND + 1));
    return `The file ${path} has been edited. ${shown}Check that the change is as intended (indentation, no duplicate lines); if not, edit the file again.`;
  }

  async #undo(path: string, run: RunScript): Promise<string> {
    const at = this.#history.findLastIndex((version) => version.path === path);
    const version = this.#history[at];
    if (!version) throw new Mistake(`There is no edit of ${path} to undo.`);
    await save(run, version, version.text);
    this.#history.splice(at, 1);
    return `The last edit of ${path} was undone. ${this.#numbered(version.text, path)}`;
  }

  #remember(version: File): void {
    this.#history.push(version);
    let all = this.#history.reduce((sum, { text }) => sum + text.length, 0);
    while (all > MOST_HISTORY) all -= this.#history.shift()?.text.length ?? 0;
  }

  #expanded(text: string): string {
    return this.#options.verbatim ? text : expandTabs(text);
  }

  /** Returns a text with line numbers, in the form of `cat -n`. */
  #numbered(text: string, of: string, first = 1): string {
    const start = firstOf(text, MOST_SHOWN);
    const shown = start.length < text.length ? start + CLIPPED : text;
    const lines = this.#expanded(shown).split('\n');
    const body = lines.map((line, at) => `${String(at + first).padStart(6)}\t${line}`).join('\n');
    return `Here's the result of running \`cat -n\` on ${of}:\n${body}\n`;
  }
}

function fileOf(path: string, found: Looked): File {
  switch (found.kind) {
    case 'file':
      return { path, text: found.text, encoding: found.encoding };
    case 'too_large':
      throw new Mistake(`${path} has more than ${MOST_BYTES} bytes; use \`bash\` with sed -n, head or tail.`);
    case 'missing':
      throw new Mistake(`The path ${path} does not exist. Give a path that exists.`);
    default:
      throw new Mistake(found.kind === 'special' ? `${path} is no regular file.` : `${path} cannot be read.`);
  }
}

async function save(run: RunScript, { path, encoding }: File, text: string): Promise<void> {
  const why = await write(run, path, text, encoding);
  if (why !== null) throw new Mistake(`${path} could not be written: ${why}`);
}

const hasRange = ({ view_range: range }: Args): boolean =>
  range !== undefined && range !== null && !(Array.isArray(range) && range.length === 0);

/** Returns the first and the last line, from 1. */
function rangeOf({ view_range: range }: Args, count: number): [number, number] {
  if (!Array.isArray(range) || range.length !== 2 || !range.every(Number.isInteger))
    throw new Mistake('`view_range` is a list of two whole numbers.');
  const [from, to] = range as [number, number];
  const wrong = (what: string) => new Mistake(`\`view_range\` ${listOf([from, to])}: ${what}`);
  if (from < 1 || from > count)
    throw wrong(`the first line is outside of the file's lines ${listOf([1, count])}`);
  if (to > count) throw wrong(`the last line is beyond the file's ${count} lines`);
  if (to !== -1 && to < from) throw wrong('the last line is before the first');
  return [from, to === -1 ? count : to];
}

/** Returns where the only occurrence begins. */
function onlyIndexOf(old: string, text: string, path: string): number {
  const at = text.indexOf(old);
  if (at === -1)
    throw new Mistake(
      `Nothing was replaced: old_str \`${old}\` does not occur in ${path}, character for character.`,
    );
  if (old === '' ? text === '' : text.indexOf(old, at + old.length) === -1) return at;
  const lines = text.split('\n').flatMap((line, index) => (line.includes(old) ? [index + 1] : []));
  throw new Mistake(
    `Nothing was replaced: old_str \`${old}\` occurs more than once, in lines ${listOf(lines)}. Make it unique.`,
  );
}

const countOf = (what: string, text: string): number => text.split(what).length - 1;
