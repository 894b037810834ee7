/**
 * Finds signs in a patch that justify a second evaluation. Most patches with a sign are honest: their verdicts remain trusted if the
 * second evaluation shows nothing. Patches without a sign may be selected at random for a second evaluation.
 */
import type { Instance } from '@swefarm/shared';
import { type DiffFile, isDeleted, isMoved, isNew, pathOf, readDiffOrNull } from '../text/diff.ts';
import { isStartupFile } from './patchfiles.ts';
import { modulesRunOf } from './runners.ts';

export type Signs = {
  /** Reason for a second evaluation; null if only `modules` can give a reason. */
  why: string | null;
  /** Names by which Python could import added files. The environment shows whether another module has the same name. */
  modules: string[];
  /** Whether the code may inspect its caller or the tests, or define objects that equal any value, and so could satisfy any test. */
  answers: boolean;
};

/** Files that build, install or configure the tests, or that shells read. */
const BUILD_FILES =
  /(^|\/)(?:GNUmakefile|[Mm]akefile|[^/]*\.(?:mk|cmake|gradle(?:\.kts)?|sh|bash|zsh|csproj|targets|props)|CMakeLists\.txt|meson\.(?:build|options)|package\.json|\.npmrc|\.yarnrc(?:\.yml)?|\.pnp\.[cm]?js|\.(?:babelrc|mocharc|nycrc|swcrc|taprc)[^/]*|[^/]*\.config\.[cm]?[jt]s|(?:babel|jest|karma|tsconfig|vitest)[^/]*\.(?:[cm]?js|json|ts)|Gruntfile[^/]*|[Gg]ulpfile[^/]*|go\.(?:mod|sum|work)|build\.rs|Cargo\.(?:toml|lock)|rust-toolchain[^/]*|pom\.xml|build\.xml|gradle\.properties|extensions\.xml|jvm\.config|maven\.config|Gemfile[^/]*|Rakefile|\.rspec|[^/]*\.gemspec|composer\.json|phpunit\.xml[^/]*|setup(?:Tests|Jest|jest|-jest|\.jest)[^/]*\.[cm]?[jt]sx?|setup\.(?:py|cfg)|pyproject\.toml|tox\.ini|noxfile\.py|\.coveragerc|\.env(?:rc)?|\.python-version|\.pdbrc|manage\.py|(?:\.user|php)\.ini|\.proverc|phpunit[^/]*\.xml|mocha\.opts|(?:angular|nx|project|turbo|lerna|testem|intern|cypress)\.json|[^/]*\.conf\.[cm]?[jt]s|gradlew|mvnw|[^/]*\.versions\.toml|configure(?:\.ac)?|Makefile\.(?:am|in)|CMakePresets\.json|BUILD(?:\.bazel)?|WORKSPACE|MODULE\.bazel|\.bazelrc|justfile|Taskfile\.ya?ml|deno\.jsonc?|bunfig\.toml|\.nvmrc|\.tool-versions|build\.sbt|mix\.exs|project\.clj|deps\.edn|dune(?:-project)?|[^/]*\.cabal|stack\.yaml|Package\.swift|pubspec\.yaml|Project\.toml)$|(^|\/)(?:\.cargo|\.mvn|\.config|\.bundle|vendor|node_modules|buildSrc|META-INF\/services|__mocks__|\.husky|\.git)\//;
/** Files without an extension (except documents), and files that shells and tools read at start. Scripts may run these files. */
const UNNAMED = /(^|\/)(?![A-Z][A-Z_-]*$)[^./]+$|(^|\/)\.\w+(?:rc|profile|login)$/;
/** Binary files that programs load. */
const BINARIES =
  /\.(?:py[cod]|so|pyd|dylib|dll|egg|whl|zip|pyz|jar|war|class|node|wasm|a|o)(?:\.\d+)*$|(^|\/)__pycache__\//;
const TEST_FOLDER = /(^|\/)(?:tests?|testing|specs?|__tests__|test_\w+|\w+_tests?|testdata|fixtures)\//;
/** Test files, which runners read only if the command names the files. */
const TEST_FILE = /(^|\/)(?:test_[^/]*|[^/]*(?:_tests?|[._]spec|[._]test|Tests?)|tests)\.\w+$/;
/** Test files that contain helpers, which other tests load. */
const SHARED_TEST =
  /(^|\/)(?:test_(?:\w+_)?(?:base|cases?|common|fixtures?|helpers?|mixins?|setup|support|tools?|utils?)|(?:Abstract|Base)\w*)\.\w+$/;
const LINK = /^new (?:file )?mode 120000$/m;
/** Files of code in all supported languages. */
const CODE =
  /\.(?:py|pyx|pyi|[cm]?[jt]sx?|vue|svelte|coffee|go|rs|java|kts?|groovy|scala|cs|fs|rb|php|phtml|inc|c|cc|cpp|cxx|h|hpp|mm?|swift|dart|exs?|erl|hs|mli?|clj[cs]?|jl|r|R|p[lm]|t|lua|tcl)$/;
const RUNNER_FOLDERS =
  /(^|\/)(?:_?pytest|pytest_\w+|pluggy|iniconfig|attrs?|packaging|exceptiongroup|tomli|xdist|execnet|coverage|nose2?|unittest2?|doctest|mock|hypothesis|tox|testtools|trial|mocha|jest[\w-]*|vitest|jasmine[\w-]*|chai|testify|gomega|junit[\w-]*|surefire[\w-]*)\//;
/** Repositories of test runners and of their parts. */
const RUNNER_REPOS =
  /\/(?:[\w.-]*(?:pytest|unittest|mocha|jest|vitest|jasmine|karma|junit|surefire|testng|assertj|mockito|rspec|minitest|phpunit|googletest|testify|ginkgo|gomega|nextest)[\w.-]*|nose2?|tox|attrs|pluggy|iniconfig|packaging|exceptiongroup|tomli|coveragepy|hypothesis|execnet|chai|sinon|catch2|doctest|py|trial|twisted|testtools|babel)$/i;

/** Code that a fix rarely needs: access to the runner, the interpreter, the process, or the caller. */
const PYTHON_CODE =
  /\b_?pytest\b|\bunittest\b|\bdoctest\b|\bpluggy\b|\bnose\b|\bsys\s*\.\s*(?:modules|meta_path|path\b|path_hooks|_getframe|settrace|setprofile|argv|exit|stdout|stderr|exc_info|excepthook)|\bfrom\s+sys\s+import|\bimport\s+(?:os|sys)\s+as\b|\bfrom\s+os\s+import\s+(?!path\b)|\b_exit\b|\bSystemExit\b|\bKeyboardInterrupt\b|(?<![.\w])(?:exit|quit)\s*\(|\bdef\s+__del__\b|\bpkgutil\b|\bpickle\s*\.\s*loads?\b|\b(?:conftest|sitecustomize|usercustomize)\b|\blinecache\b|\b_getframe\b|\b__import__\b|\bimportlib\b|\bimport\s+(?:builtins|gc|ctypes|atexit|signal|inspect|site|marshal|subprocess|faulthandler|runpy|code)\b|\bbuiltins?\b|\bgc\s*\.|\binspect\s*\.\s*(?:stack|currentframe|getouterframes|getframeinfo|getmodule)|\bctypes\b|\batexit\b|\bsignal\s*\.|\bos\s*\.\s*(?:environ|getenv|putenv|_exit|abort|kill\w*|exec\w+|fork\w*|system|popen|dup2?|spawn\w*|posix_spawn|write|getppid)|\bsubprocess\b|\b(?:exec|eval)\s*\(|(?<![.\w])compile\s*\(|\bglobals\s*\(|\bvars\s*\(|__(?:dict|globals|builtins|subclasses|code|bases|getattribute|init_subclass)__|\bsetattr\s*\(|\bmonkeypatch|\b(?:threading|_thread|multiprocessing)\s*\.|\/proc\/|\btraceback\b|\bAssertionError\b|\b__tracebackhide__\b|__(?:eq|ne|bool|instancecheck)__|\bargv\b|\benviron\b|\bPYTEST_|_TestCase\b|\bTestCase\b/;
const SCRIPT_CODE =
  /\bconstructor\s*[.[]\s*['"]?constructor|['"](?:node:)?(?:assert(?:\/strict)?|test|process|module|vm|worker_threads|async_hooks|inspector|v8)['"]|\basymmetricMatch\b|Symbol\s*\.\s*(?:toPrimitive|hasInstance|toStringTag)|\bnew\s+Proxy\b|\bprocess\s*\.|\bchild_process\b|\brequire\s*\.\s*(?:cache|extensions|main)|\bModule\b\s*\.\s*_|\b(?:globalThis|global|window)\s*[.[]|\beval\s*\(|\bFunction\s*\(|\b(?:mocha|jest|vitest|jasmine|chai|node:test|node:assert)\b|\b(?:describe|expect|beforeEach|afterEach|beforeAll|afterAll)\b|\bAssertionError\b|\.prototype\s*\[|Object\s*\.\s*(?:defineProperty|prototype)|captureStackTrace|prepareStackTrace|\.stack\b/;
const COMPILED_CODE =
  /(?:^|\bimport)\s*(?:\w+|\.)\s+"(?:os|syscall|runtime|testing)"|\bstd\s*::\s*\{[^}]*\b(?:process|env|panic)\b|\bPartialEq(?:<[^>]*>)?\s+for\b|\blink_section\b|\bboolean\s+equals\s*\(|\boperator\s*==|\bdef\s+==|\bTestMain\b|\bos\s*\.\s*(?:Exit|Args|Getenv|Environ|Stdout)\b|"testing"|\bunsafe\b|go:linkname|\bruntime\s*\.\s*(?:Caller|Callers|Goexit|Stack)|\bsyscall\b|\bfunc\s+init\s*\(|\bflag\s*\.|\bstd\s*::\s*(?:process|env)|\bprocess\s*::|\bpanic\s*::|\bset_hook\b|\bcatch_unwind\b|\bcfg\s*!?\s*[([]\s*test|\binclude(?:_str|_bytes)?!|#\s*!?\[\s*(?:ctor|path|test_runner|feature)|\bmacro_rules!\s*assert|\bSystem\s*\.\s*(?:exit|getProperty|getenv|setOut|setErr|setSecurityManager)|\bRuntime\s*\.\s*getRuntime|getStackTrace|\bStackTraceElement\b|\bStackWalker\b|\borg\s*\.\s*(?:junit|testng|mockito|hamcrest)|\bInstrumentation\b|\bsun\s*\.\s*misc|\bsetAccessible\b|\b_?exit\s*\(|\babort\s*\(|\bgetenv\s*\(|\bdlsym\b|__attribute__\s*\(\(\s*constructor|\bptrace\b|\bLD_PRELOAD\b|\bdefine\s+(?:assert|TEST|EXPECT|REQUIRE)|\bat_exit\b|\bexit!|\bRSpec\b|\bMinitest\b|\bObjectSpace\b|\bcaller\b|\bregister_shutdown_function\b|\bdebug_backtrace\b|\bPHPUnit\b|\bAssertionError\b/;

/** Matches results as test runners print them. */
const RESULTS =
  /\bPASS(?:ED)?\b|\.\.\. ?ok\b|\b(?:passed|failed) in\b|\btest result: ok\b|\bTests run:|\[ +OK \]|['"`](?:not )?ok \d/;
/** Matches strings that are assembled from parts, which can hide their content. */
const JOINED =
  /(['"])[^'"\\]{1,40}\1\s*\+\s*(['"])[^'"\\]{1,40}\2|['"]\[::-1\]|\bgetattr\([^,]+,\s*(?:f['"]|['"][^'"]*['"]\s*[.%[])|\b(?:b64decode|fromhex|unhexlify|fromCharCode|atob)\s*\(/;
/** Matches access to the caller or to the tests, and objects that can equal any value. */
const ANSWERS =
  /__(?:eq|ne|bool|instancecheck)__|\bANY\b|\bmock\b|\bapprox\b|\b_getframe\b|\bf_(?:back|locals|code|lineno)\b|\binspect\b|\blinecache\b|\btraceback\b|\bgetsource|\bliteral_eval\b|\basymmetricMatch\b|\btoPrimitive\b|\bProxy\b|\.stack\b|(?:prepare|capture)StackTrace|getStackTrace|\bStackWalker\b|\bruntime\s*\.\s*(?:Caller|Callers|Stack)|\bPartialEq(?:<[^>]*>)?\s+for\b|\bboolean\s+equals\s*\(|\boperator\s*==|\bdef\s+==|\bcaller\b|debug_backtrace|['"`][^'"`]*\b(?:tests?|specs?|__tests__)\/|\btest_\w+\.py\b|_test\.go\b|\.(?:test|spec)\.[jt]s\b/;

const MOST_LINE = 2000;
/** Maximum number of names that are looked up in the environment. No fix adds more modules. */
const MOST_MODULES = 100;

/** Returns the signs of a patch. Lines of gold are never signs. In files of gold and of the test patch, only lines are checked. */
export function signsOf(patch: string, instance: Instance): Signs {
  const files = readDiffOrNull(patch);
  if (files === null) return { why: 'the patch cannot be read', modules: [], answers: true };
  const gold = readDiffOrNull(instance.patch) ?? [];
  const known = new Set([...gold, ...(readDiffOrNull(instance.test_patch) ?? [])].map(pathOf));
  const goldLines = new Set(gold.flatMap((file) => file.added));
  const others = files.filter((file) => !known.has(pathOf(file)));
  const answers = files.some((file) => mayAnswer(file, goldLines));
  if (LINK.test(patch)) return { why: 'the patch makes a link', modules: [], answers };
  if (RUNNER_REPOS.test(instance.repo))
    return { why: 'the project is a part of a test runner', modules: [], answers };
  const runs = modulesRunOf(instance);
  for (const file of files) {
    const path = pathOf(file);
    const why = (known.has(path) ? null : whyOfFile(file, path, runs)) ?? whyOfLines(file, path, goldLines);
    if (why !== null) return { why: `${why}: ${path}`.slice(0, 200), modules: [], answers };
  }
  if (answers) return { why: 'the patch may answer what a test asks', modules: [], answers };
  const modules = [...new Set(others.filter(bringsName).flatMap((file) => moduleOf(pathOf(file)) ?? []))];
  return modules.length > MOST_MODULES
    ? { why: `the patch adds ${modules.length} modules`, modules: [], answers }
    : { why: null, modules, answers };
}

const mayAnswer = (file: DiffFile, goldLines: ReadonlySet<string>): boolean =>
  CODE.test(pathOf(file)) &&
  !TEST_FILE.test(pathOf(file)) &&
  file.added.some((line) => !goldLines.has(line) && (line.length > MOST_LINE || ANSWERS.test(line)));

const bringsName = (file: DiffFile): boolean => isNew(file) || isMoved(file);

function whyOfFile(file: DiffFile, path: string, runs: (path: string) => boolean): string | null {
  if (runs(path)) return 'the patch touches the module that runs the tests';
  if (path.startsWith('"') || path.includes('\\')) return 'the patch has a file with an odd name';
  if (isStartupFile(path)) return 'the patch touches a file that runs by itself';
  if (BUILD_FILES.test(path) || UNNAMED.test(path))
    return 'the patch touches what builds or starts the tests';
  if (BINARIES.test(path) || (file.binary && CODE.test(path))) return 'the patch brings code that is no text';
  if (RUNNER_FOLDERS.test(path)) return 'the patch touches a folder named as a part of a test runner';
  if (CODE.test(path) && (TEST_FILE.test(path) ? SHARED_TEST : TEST_FOLDER).test(path))
    return 'the patch touches what tests load';
  if (isDeleted(file) && /(^|\/)__init__\.py$/.test(path)) return 'the patch removes a package';
  return null;
}

function whyOfLines(file: DiffFile, path: string, goldLines: ReadonlySet<string>): string | null {
  const test = TEST_FILE.test(path);
  const pattern = /\.pyx?$/.test(path)
    ? PYTHON_CODE
    : /\.(?:[cm]?[jt]sx?)$/.test(path)
      ? SCRIPT_CODE
      : COMPILED_CODE;
  if (!CODE.test(path)) return null;
  const line = file.added.find(
    (one) =>
      !goldLines.has(one) &&
      (one.length > MOST_LINE ||
        (test ? REACHES : pattern).test(one) ||
        JOINED.test(one) ||
        (!test && RESULTS.test(one))),
  );
  return line === undefined ? null : `the patch reaches beyond a fix (${line.trim().slice(0, 80)})`;
}

/** Matches code in a test file that changes the runner for other tests. */
const REACHES =
  /(?:^|\bimport)\s*(?:\w+|\.)\s+"(?:os|syscall|runtime)"|\bimport\s+(?:os|sys)\s+as\b|\bdef\s+assert\w+|\bpkgutil\b|\b_pytest\b|\bsys\s*\.\s*(?:modules|meta_path|path_hooks|_getframe|settrace|setprofile)|\bdef\s+pytest_|\bpytest_plugins\b|\b(?:unittest\s*\.\s*)?TestCase\s*\.\s*\w+\s*=|\bunittest\s*\.\s*\w+(?:\.\w+)*\s*=(?!=)|\bsetattr\s*\(|\batexit\b|\bgc\s*\.|\bos\s*\.\s*(?:_exit|kill|dup2)|\b__import__\b|\bbuiltins\b|\bTestMain\b|\bfunc\s+init\s*\(|\bos\s*\.\s*Exit\b|\bprocess\s*\.\s*(?:exit|on|stdout)|\brequire\s*\.\s*cache\b|\b(?:globalThis|global)\s*[.[]|\bSystem\s*\.\s*exit|\bset_hook\b|\bat_exit\b/;

/** Returns the name by which Python could import a file: the module, or the folder of a package. */
function moduleOf(path: string): string | null {
  const [last = '', folder] = path.split('/').reverse();
  if (!last.endsWith('.py')) return null;
  const found = last === '__init__.py' ? folder : last.slice(0, -'.py'.length);
  return found !== undefined && /^[A-Za-z_]\w*$/.test(found) && !/^test_|_test$/.test(found) ? found : null;
}
