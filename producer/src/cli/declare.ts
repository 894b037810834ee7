/** Declares commands: one record of options defines help, defaults, suggestions and types. */
import { Argument, type Command, InvalidArgumentError, Option } from 'commander';

/** One option or argument. `Value` is the type that the command receives. */
export type Setting<Value> = {
  help: string;
  /** `switch`: an option without a value. `list`: a repeatable option with one value each time. */
  form: 'value' | 'switch' | 'list';
  /** Converts the text to a value. Throws InvalidArgumentError. */
  read?: (text: string) => unknown;
  choices?: readonly string[];
  fallback?: unknown;
  mandatory?: boolean;
  group?: string;
  /** Never set: only the type is used. */
  value?: Value;
};

/** Options that are made from a table. The command receives the values in one record. */
export type Bundle<Value> = { made: () => Option[]; value?: Value };

/** Keys are commander's flags, such as `--n-times <k>`. The key of a bundle is the name of the record that the command receives. */
export type Options = Readonly<Record<string, Setting<unknown> | Bundle<unknown>>>;
/** Keys are commander's arguments: `<run>`, `[name]`, `<file...>`. A string value is the help text of an argument. */
export type Arguments = Readonly<Record<string, string | Setting<unknown>>>;

type Camel<Text> = Text extends `${infer First}-${infer Rest}` ? `${First}${Capitalize<Camel<Rest>>}` : Text;
type Word<Text> = Text extends `${infer First} ${string}` ? First : Text;
type NameOf<Flags> = Flags extends `${string}--no-${infer Name}`
  ? Camel<Word<Name>>
  : Flags extends `${string}--${infer Name}`
    ? Camel<Word<Name>>
    : Flags;
type ValueOf<Declared> = Declared extends { value?: infer Value } ? Value : string;

/** Values that a command receives for the declared options. */
export type Values<Declared extends Options> = {
  readonly [Flags in keyof Declared as NameOf<Flags>]: ValueOf<Declared[Flags]>;
};
type Given<Declared extends Arguments> = {
  readonly [Name in keyof Declared as ArgumentName<Name>]: Name extends `${string}...${string}`
    ? string[]
    : Declared[Name] extends string
      ? Name extends `[${string}`
        ? string | undefined
        : string
      : ValueOf<Declared[Name]>;
};
type ArgumentName<Name> = Name extends `${'<' | '['}${infer Inner}...${string}`
  ? Inner
  : Name extends `${'<' | '['}${infer Inner}${'>' | ']'}`
    ? Inner
    : never;

export const text = (help: string): Setting<string | undefined> => ({ help, form: 'value' });
/** Declares `--flag [value]`, which is true when no value follows the flag. */
export const textOrTrue = (help: string): Setting<string | true | undefined> => ({ help, form: 'value' });
/** Declares `--flag <value...>` with one or more values. */
export const texts = (help: string): Setting<string[] | undefined> => ({ help, form: 'value' });
/** Declares an option without a value. `--NAME` is true when given, `--no-NAME` is false when given. */
export const flag = (help: string): Setting<boolean> => ({ help, form: 'switch' });
/** Declares an option that may be repeated, with one value each time. */
export const list = (help: string): Setting<string[] | undefined> => ({ help, form: 'list' });
/** @param read converts the text; throws InvalidArgumentError */
export const parsed = <Value>(help: string, read: (text: string) => Value): Setting<Value | undefined> => ({
  help,
  form: 'value',
  read,
});
/** @param expected completes the error "expected …" for a number that `accepts` refuses */
export const number = (
  help: string,
  expected: string,
  accepts: (value: number) => boolean,
): Setting<number | undefined> =>
  parsed(help, (text) => {
    if (text.trim() !== '' && accepts(Number(text))) return Number(text);
    throw new InvalidArgumentError(`expected ${expected}.`);
  });
export const share = (help: string): Setting<number | undefined> =>
  number(help, 'a share between 0 and 1', (value) => value >= 0 && value <= 1);
export const whole = (help: string): Setting<number | undefined> =>
  parsed(help, (text) => {
    if (/^\d+$/.test(text)) return Number(text);
    throw new InvalidArgumentError('expected a whole number.');
  });
export const choice = <const Choice extends string>(
  help: string,
  choices: readonly Choice[],
): Setting<Choice | undefined> => ({ help, form: 'value', choices });

type Known<Value> = Setting<Exclude<Value, undefined>>;
export const required = <Value>(setting: Setting<Value>) => ({ ...setting, mandatory: true }) as Known<Value>;
export const defaulted = <Value>(setting: Setting<Value>, fallback: Exclude<Value, undefined>) =>
  ({ ...setting, fallback }) as Known<Value>;

/** Returns the same options, which the help shows under `heading`. */
export const group = <Declared extends Readonly<Record<string, Setting<unknown>>>>(
  heading: string,
  options: Declared,
): Declared =>
  Object.fromEntries(
    Object.entries(options).map(([flags, setting]) => [flags, { ...setting, group: heading }]),
  ) as Declared;

export function optionOf(flags: string, setting: Omit<Setting<unknown>, 'value'>): Option {
  const { help, form, read, choices, fallback, mandatory, group } = setting;
  const option = new Option(flags, help);
  if (group !== undefined) option.helpGroup(group);
  if (choices) option.choices(choices);
  if (read) option.argParser(read);
  if (form === 'list') option.argParser((one, earlier?: string[]) => [...(earlier ?? []), one]);
  if (fallback !== undefined) option.default(fallback);
  return option.makeOptionMandatory(mandatory === true);
}

/** Adds a declared command to `parent`. */
export type Declaration = (parent: Command, name: string) => Command;

export type CommandSpec<O extends Options, A extends Arguments> = {
  /** Description of a subcommand; commands.ts describes the top-level commands. */
  description?: string;
  arguments?: A;
  options: O;
  /** Command line that is shown below the help. */
  example: string;
  /** Text that is shown below the help. */
  notes?: string;
  /** Returns the exit code; undefined means 0. */
  run(options: Values<O>, given: Given<A>): Promise<number> | Promise<void>;
};

/** Text below the options of a command's help. */
type TextBelow = { example: string; notes: string };
const BELOW = new WeakMap<Command, TextBelow>();

/** Returns the text below the options of a command's help; undefined for a command with subcommands. */
export const textBelow = (made: Command): TextBelow | undefined => BELOW.get(made);

export const command =
  <O extends Options, A extends Arguments = Record<never, never>>(spec: CommandSpec<O, A>): Declaration =>
  (parent, name) => {
    const made = parent.command(name).description(spec.description ?? '');
    const names = Object.entries(spec.arguments ?? {}).map(([syntax, one]) => {
      const { help, choices, fallback } = typeof one === 'string' ? { help: one } : one;
      const argument = new Argument(syntax, help).default(fallback);
      made.addArgument(choices ? argument.choices(choices) : argument);
      return argument.name();
    });
    const readers = Object.entries(spec.options).map(([flags, one]) => addOption(made, flags, one));
    const { example, notes = '' } = spec;
    BELOW.set(made, { example, notes });
    made.addHelpText('after', `${notes}\nExample:\n  ${example}`);
    return made.action(async () => {
      const raw = made.opts<Record<string, unknown>>();
      const values = Object.fromEntries(readers.map((read) => read(raw)));
      const given = Object.fromEntries(names.map((argument, at) => [argument, made.processedArgs[at]]));
      const code = await spec.run(values as Values<O>, given as Given<A>);
      if (code !== undefined) process.exitCode = code;
    });
  };

/** Declares a command with subcommands. */
export const commands =
  (below: Readonly<Record<string, Declaration>>): Declaration =>
  (parent, name) => {
    const made = parent.command(name);
    for (const [inner, declaration] of Object.entries(below)) declaration(made, inner);
    return made;
  };

type Reader = (raw: Readonly<Record<string, unknown>>) => [name: string, value: unknown];

function addOption(made: Command, flags: string, one: Setting<unknown> | Bundle<unknown>): Reader {
  if ('made' in one) {
    const options = one.made();
    for (const option of options) made.addOption(option);
    const names = options.map((option) => option.attributeName());
    return (raw) => [flags, Object.fromEntries(names.map((name) => [name, raw[name]]))];
  }
  const option = optionOf(flags, one);
  made.addOption(option);
  const name = option.attributeName();
  return (raw) => [name, one.form === 'switch' ? (raw[name] ?? false) : raw[name]];
}
