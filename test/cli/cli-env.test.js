'use strict'

// longstack env: the shell and Node read its output as intended, whatever characters the path contains.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { strict } = require('../helpers/installed')
const { folder, longstack } = require('../helpers/span-files')
const { register, root } = require('../helpers/run')

const ODD_NAME = 'it\'s a "b" \\ $HOME $(exit 9) `exit 9` ünï 漢字 %PATH% ^&|<>()!;,#~*?[x]{y}'
const ENABLED = 'require(path.join(process.env.MAIN, "..", "..", "..")).enabled + process.version'
const EVAL = {
  sh: 'eval "$("$NODE" "$MAIN" env)"; cd /; exec "$NODE" -p "$ENABLED"',
  bash: 'set -euo pipefail; eval "$("$NODE" "$MAIN" env)"; cd /; exec "$NODE" -p "$ENABLED"',
  zsh: 'eval "$("$NODE" "$MAIN" env)"; cd /; exec "$NODE" -p "$ENABLED"',
  fish: '"$NODE" "$MAIN" env --shell fish | source; cd /; exec "$NODE" -p "$ENABLED"'
}

const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(LONGSTACK|NODE_)/.test(name)))

/**
 * A copy of longstack in a directory with an odd name.
 * @param {import('ava').ExecutionContext} t
 * @param {string} name
 */
function copy (t, name) {
  const directory = path.join(fs.realpathSync(folder(t)), name, 'longstack')
  for (const source of ['lib', 'report', 'index.js', 'package.json']) {
    fs.cpSync(path.join(root, source), path.join(directory, source), { recursive: true })
  }
  for (const name of ['node_modules', 'native']) fs.symlinkSync(path.join(root, name), path.join(directory, name))
  return path.join(directory, 'lib', 'cli', 'main.js')
}

/** @param {string[]} args @param {Record<string, string>} [more] */
async function variables (args, more = {}) {
  const { stdout, stderr, code } = await longstack(['env', '--json', ...args], { env: more })
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

for (const [shell, command] of Object.entries(EVAL)) {
  test(`${shell} reads the output, from an oddly named directory, after options with spaces`, (t) => {
    if (spawnSync(shell, ['-c', 'exit 0']).status !== 0) {
      t.log(`not tested: there is no ${shell}`)
      return t.false(strict)
    }
    const main = copy(t, ODD_NAME)
    const other = path.join(path.dirname(main), 'other file.js')
    fs.writeFileSync(other, 'Object.defineProperty(process, "version", { value: "other" })')
    const { status, stdout, stderr } = spawnSync(shell, ['-c', command], {
      encoding: 'utf8',
      env: { ...env, LC_ALL: 'C.UTF-8', NODE: process.execPath, MAIN: main, ENABLED, NODE_OPTIONS: `--require "${other.replace(/["\\]/g, '\\$&')}"` }
    })
    t.deepEqual([status, stdout, stderr], [0, 'trueother\n', ''])
  })
}

test('each option is a flag; its variable comes after NODE_OPTIONS', async (t) => {
  const { stdout } = await longstack(['env', '--spans', "it's.jsonl;slower=5", '--blocked=50', '--no-errors', '--shell', 'bash'])
  t.is(stdout, [
    `export NODE_OPTIONS='--require=${register}'`,
    "export LONGSTACK_ERRORS='off'",
    "export LONGSTACK_SPANS='it'\\''s.jsonl;slower=5'",
    "export LONGSTACK_BLOCKED='50'",
    ''
  ].join('\n'))
  t.deepEqual(await variables(['--frames', '7']), { NODE_OPTIONS: `--require=${register}`, LONGSTACK_FRAMES: '7' })
})

test('fish, PowerShell and cmd get their own quotes', async (t) => {
  const print = async (/** @type {string} */ shell) => {
    const { stdout } = await longstack(['env', '--shell', shell, '--spans', 'it\'s 100% \\ “‘a’” & "b & c".jsonl'])
    return stdout.split('\n')[1]
  }
  t.is(await print('fish'), 'set -gx LONGSTACK_SPANS \'it\\\'s 100% \\\\ “‘a’” & "b & c".jsonl\'')
  t.is(await print('powershell'), '$env:LONGSTACK_SPANS = \'it\'\'s 100% \\ “‘‘a’’” & "b & c".jsonl\'')
  t.is(await print('pwsh'), await print('powershell'))
  t.is(await print('cmd'), '@set "LONGSTACK_SPANS=it\'s 100%% \\ “‘a’” & "b ^& c".jsonl"')
})

test('NODE_OPTIONS keeps its contents, and has longstack once', async (t) => {
  const own = `--require=${register}`
  for (const [present, expected] of [
    ['', own],
    ['   ', own],
    ['--max-old-space-size=100', `--max-old-space-size=100 ${own}`],
    ['--title="a b"  --max-old-space-size=100', `--title="a b"  --max-old-space-size=100 ${own}`],
    [own, own],
    [`--require ${register} --title=x`, `--title=x ${own}`],
    [`--title=x -r "${register}"`, `--title=x ${own}`],
    [`-r ${register} --require=${register}`, own]
  ]) {
    const { NODE_OPTIONS } = await variables([], { NODE_OPTIONS: present })
    t.is(NODE_OPTIONS, expected)
    t.is((await variables([], { NODE_OPTIONS })).NODE_OPTIONS, NODE_OPTIONS)
  }
})

test('wrong usage is reported in one sentence', async (t) => {
  for (const [args, sentence] of /** @type {Array<[string[], RegExp]>} */ ([
    [['x'], /^longstack: longstack env takes no arguments\. Received "x"\.\n/],
    [['--shell', 'fsh'], /^longstack: --shell: unknown shell "fsh"\. Did you mean "(fish|sh)"\?\n/],
    [['--shell', 'tcsh-of-old'], /unknown shell "tcsh-of-old"\. Expected sh, bash, /],
    [['--shell', 'sh', '--json'], /--json and --shell exclude each other\./],
    [['--blocked', 'x'], /^longstack: --blocked: /],
    [['--spnas', 'x'], /Unknown flag "--spnas"\. Did you mean --spans\?/]
  ])) {
    const { stdout, stderr, code } = await longstack(['env', ...args])
    t.deepEqual([code, stdout], [2, ''])
    t.regex(stderr, sentence)
  }
  const { stdout } = await longstack(['env', '--help'])
  t.regex(stdout, /eval "\$\(longstack env\)"/)
})
