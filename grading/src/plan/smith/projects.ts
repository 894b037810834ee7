/** SWE-smith's table of projects: how the tests of each are run and read. */
import table from '../../../data/swesmith.json' with { type: 'json' };

/** How the names of tests tell the files that hold them. */
export type TestFilesRule =
  | 'none'
  | 'python'
  | 'python-mido'
  | 'python-slugify'
  | 'python-tornado'
  | 'go'
  | 'java'
  | 'javascript'
  | 'php'
  | 'rust';

export type SmithProject = {
  /** `owner__name.commit`, the commit's first 8 digits. */
  name: string;
  commit: string;
  language: string;
  image: string;
  parser: string;
  testCommand: string;
  timeoutSeconds: number;
  /** The files of the instance's tests are added to the command. */
  minTesting: boolean;
  /** What is added to the command instead. */
  commandRule: 'mypy-k' | 'babel-packages' | null;
  testFiles: TestFilesRule;
  /** Where the image has its tree, if that is not where the harness works. */
  treeElsewhere: string | null;
};

type Group = {
  language: string;
  parser: string;
  test_cmd: string;
  timeout?: number;
  min_testing?: boolean;
  test_files?: string;
  command_rule?: string;
  tree?: string;
  repos: string[];
};

/** The harness's own limit in seconds for nearly all projects. */
const TIMEOUT_SECONDS = 90;

const FILES_OF_LANGUAGE: Record<string, TestFilesRule> = {
  python: 'python',
  go: 'go',
  java: 'java',
  javascript: 'javascript',
  php: 'php',
  rust: 'rust',
};

const PROJECTS = new Map(
  (table.projects as Group[]).flatMap((group) => group.repos.map((name) => [name, projectOf(name, group)])),
);

function projectOf(name: string, group: Group): SmithProject {
  const dot = name.lastIndexOf('.');
  return {
    name,
    commit: name.slice(dot + 1),
    language: group.language,
    image: smithImage(name),
    parser: group.parser,
    testCommand: group.test_cmd,
    timeoutSeconds: group.timeout ?? TIMEOUT_SECONDS,
    minTesting: group.min_testing ?? false,
    commandRule: (group.command_rule as SmithProject['commandRule'] | undefined) ?? null,
    testFiles: (group.test_files as TestFilesRule | undefined) ?? FILES_OF_LANGUAGE[group.language] ?? 'none',
    treeElsewhere: group.tree ?? null,
  };
}

/** The published image of a project: lower case, and `_1776_` for the first double underscore, as registries refuse that. */
function smithImage(name: string): string {
  const at = name.indexOf('__');
  // An owner that ends in a hyphen would give a name that registries refuse too.
  const owner = name.slice(0, at).replace(/-$/, '_');
  return `swebench/swesmith.x86_64.${owner}_1776_${name.slice(at + 2)}:latest`.toLowerCase();
}

/** Null for a project that the table does not have. */
export const smithProject = (name: string): SmithProject | null => PROJECTS.get(name) ?? null;

/** The names of all projects. */
export const smithProjects = (): string[] => [...PROJECTS.keys()];
