'use strict'

// An installed longstack: no script ran, no compiler was present, and the binaries come from the tarball.

const test = require('ava')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { install, versions, run, strict } = require('../helpers/installed')
const { ownManifest, target } = require('../../lib/platform')
const { checkBinary } = require('../../native/binary')
const { runsAll } = require('../helpers/run')
const { skip } = require('../helpers/skip')

const PROGRAM = `
  const trace = require('longstack')
  setTimeout(function later () {
    const { engine, engineWhy, fault } = trace.stats()
    console.log(JSON.stringify({ engine, engineWhy, fault, stack: new Error('told').stack }))
  }, 1)
`
const IN_A_WORKER = `
  const { Worker, isMainThread, parentPort } = require('node:worker_threads')
  const { engine } = require('longstack').stats()
  if (isMainThread) new Worker(__filename).on('message', (theirs) => console.log(JSON.stringify([engine, theirs])))
  else parentPort.postMessage(engine)
`
const PATCHED = `
  const Module = require('node:module')
  Module._extensions['.node'] = () => { throw new Error('no addon for you') }
  Module._load = ((load) => function (name) {
    if (name.endsWith('.node')) throw new Error('no addon for you')
    return load.apply(this, arguments)
  })(Module._load)
`

const { there, missing } = versions()
const platform = target()
const carried = ['115', '127', '137', '147']

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-install-'))
/** @type {Awaited<ReturnType<typeof install>>} */
let installed

test.before(async (t) => {
  t.timeout(480_000)
  if (missing.length > 0) t.log(`not tried here, run npm run binaries: Node ${missing.map(({ major }) => major).join(', ')}`)
  installed = await install(folder)
  if (installed.offline !== undefined) t.log(`unpacked without npm, which has no network: ${installed.offline}`)
})

test.after.always(() => fs.rmSync(folder, { recursive: true, force: true }))

/**
 * Runs a program under the preload of an installed longstack.
 * @param {string} node
 * @param {string} [source]
 * @param {string[]} [args]
 * @param {string} [app]
 * @param {Record<string, string>} [env]
 */
async function say (node, source = PROGRAM, args = [], app = installed.app, env = {}) {
  const file = path.join(fs.mkdtempSync(path.join(app, 'program-')), 'program.js')
  fs.writeFileSync(file, source)
  const { code, signal, stdout, stderr } = await run(node, [...args, '-r', 'longstack/register', file], { cwd: app, env })
  return { code, signal, said: stdout === '' ? undefined : JSON.parse(stdout), stderr }
}

/**
 * A copy of what was installed, to be damaged.
 * @param {import('ava').ExecutionContext} t
 * @param {string} abi
 */
function copy (t, abi) {
  const app = fs.mkdtempSync(path.join(folder, 'damaged-'))
  t.teardown(() => fs.rmSync(app, { recursive: true, force: true }))
  fs.cpSync(installed.app, app, { recursive: true, preserveTimestamps: true })
  const home = path.join(app, 'node_modules', 'longstack')
  const binary = path.join(`${home}-${platform}`, `longstack.abi${abi}.node`)
  fs.mkdirSync(path.dirname(binary), { recursive: true }) // where there was no compiler there is none
  return { app, home, binary }
}

/** @param {string} stack */
function tells (stack) {
  return /^Error: told\n {4}at .*later.*\n[^]* {2}── setTimeout\(1\) · \d+ ms earlier ──\n {4}at Object\.<anonymous> /.test(stack)
}

/** The binary that was installed. @param {string} abi */
function carriedFor (abi) {
  return path.join(`${installed.home}-${platform}`, `longstack.abi${abi}.node`)
}

/** Has there to be one? @param {string} abi */
function has (abi) {
  return strict || fs.existsSync(carriedFor(abi))
}

test('the tarball holds the program and what building a binary needs; the platform\'s holds the binaries', (t) => {
  t.true(fs.statSync(installed.tarball).size < 880_000)
  const filesIn = (/** @type {string} */ directory) => fs.readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => !name.startsWith('node_modules') && fs.statSync(path.join(directory, name)).isFile())
  const files = filesIn(installed.home)
  const needed = ['index.js', 'lib/register.js', 'report/render/page/client.json.br', 'types/index.d.ts', 'native/binding.cc', 'native/walker.h',
    'native/longstack.h', 'native/build.js', 'README.md', 'LICENSE']
  t.deepEqual(needed.filter((name) => !files.includes(name)), [])
  t.deepEqual(files.filter((name) => /^(test|bench|\.ci|\.cache|types\/(test|native))\b|\.gyp|\.test\.|tsconfig|\.tgz$|\.node$|bundle-later|bundle\./.test(name)), [])
  const others = fs.existsSync(`${installed.home}-${platform}`) ? filesIn(`${installed.home}-${platform}`) : []
  const binaries = others.filter((name) => name.endsWith('.node')).sort()
  t.deepEqual(others.filter((name) => !/^(longstack\.abi\d+\.node|bundle-later|bundle(-later)?\.\d[^/]*|package\.json|README\.md|LICENSE)$/.test(name)), [])
  if (strict) t.deepEqual([missing, binaries], [[], carried.map((abi) => `longstack.abi${abi}.node`)])
  for (const abi of carried.filter((one) => fs.existsSync(carriedFor(one)))) {
    const { needs, faults } = checkBinary(carriedFor(abi), platform)
    t.regex(needs, /^GLIBC 2\.\d+/)
    t.deepEqual(faults, [])
  }
  t.deepEqual(fs.readdirSync(path.join(installed.app, 'node_modules')).filter((name) => /gyp|nan|prebuild|node-addon|^d3|esbuild/.test(name)), [])
})

test('the report\'s page is built from the tarball, with the licences of its parts', async (t) => {
  const span = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), name: 'GET /', kind: 'SERVER', startTimeUnixNano: '1763685600000000000', endTimeUnixNano: '1763685600005000000' }
  fs.writeFileSync(path.join(installed.app, 'spans.jsonl'), `${JSON.stringify(span)}\n`)
  const main = path.join(installed.home, 'lib', 'cli', 'main.js')
  const { code, stdout, stderr } = await run(process.execPath, [main, 'report', 'spans.jsonl', '--html', '-'], { cwd: installed.app })
  t.deepEqual([code, stderr], [0, ''])
  t.regex(stdout, /<script>\/\*[^]*Copyright 2010-\d+ Mike Bostock[^]*<\/script>\n<\/body>/)
})

for (const { major, node, abi } of runsAll ? there : there.slice(0, 1)) {
  test(`Node ${major}: native from the tarball, in workers, with patched modules`, async (t) => {
    const engine = has(abi) ? 'native' : 'js'
    const { code, said, stderr } = await say(node)
    t.deepEqual([code, stderr, said.engine, said.fault], [0, '', engine, undefined], said.engineWhy)
    t.true(tells(said.stack), said.stack)
    t.deepEqual((await say(node, IN_A_WORKER)).said, [engine, engine])
    const patch = path.join(installed.app, 'patch.js')
    fs.writeFileSync(patch, PATCHED)
    t.is((await say(node, PROGRAM, ['-r', patch])).said.engine, engine)
  })

  test(`Node ${major}: works without a binary, or with a wrong one, and says why`, async (t) => {
    const { app, binary } = copy(t, abi)
    const env = { XDG_CACHE_HOME: fs.mkdtempSync(path.join(app, 'cache-')) }
    /** @param {RegExp} why @param {{ args?: string[], isReported?: boolean }} [options] */
    const works = async (why, { args, isReported = false } = {}) => {
      const { code, signal, said, stderr } = await say(node, PROGRAM, args, app, env)
      const printed = stderr.replace(/^.*ExperimentalWarning.*\n|^\(Use `node --trace-warnings.*\n/gm, '')
      t.deepEqual([code, signal, said?.engine], [0, null, 'js'], String(why))
      t.regex(said.engineWhy, why)
      t.true(tells(said.stack), said.stack)
      if (!isReported) return t.is(printed, '', String(why))
      t.true(printed.startsWith(`longstack: the native engine is missing: ${said.engineWhy}. `), printed)
      t.is(printed.indexOf('\n'), printed.length - 1)
      t.is((await say(node, PROGRAM, args, app, env)).stderr, '', 'reported once on a machine')
    }
    const [right, other] = [abi, carried.find((one) => one !== abi)].map((one) => path.join(path.dirname(binary), `longstack.abi${one}.node`))
    const intact = has(abi) ? fs.readFileSync(right) : undefined
    if (intact !== undefined) {
      await works(/^--permission forbids addons$/, { args: [major === 20 ? '--experimental-permission' : '--permission', '--allow-fs-read=*'] })
      await works(/^--no-addons forbids addons$/, { args: ['--no-addons'] })
    }
    if (intact !== undefined && fs.existsSync(other)) {
      fs.copyFileSync(other, binary)
      await works(/^failed to load the native addon: /, { isReported: true })
    }
    for (const [i, bytes] of ['', 'not a binary', ...[64, 4096, -1].map((end) => intact?.subarray(0, end) ?? 'ELF')].entries()) {
      fs.rmSync(binary, { force: true })
      fs.writeFileSync(binary, bytes)
      await works(/^the binary is damaged$/, { isReported: i === 0 })
    }
    fs.rmSync(binary)
    await works(new RegExp(`^no binary for ${platform}, ABI ${abi}$`), { isReported: true })
    const manifest = path.join(path.dirname(binary), 'package.json')
    if (!fs.existsSync(manifest)) return skip(t, 'there is no package for this platform')
    const text = fs.readFileSync(manifest, 'utf8')
    const { version } = ownManifest()
    fs.writeFileSync(manifest, text.replace(`"version": "${version}"`, '"version": "0.0.9"'))
    await works(new RegExp(`^the package with the binary has another version: longstack-${platform}@0.0.9, expected ${version}$`), { isReported: true })
    fs.rmSync(path.dirname(binary), { recursive: true })
    await works(new RegExp(`^the package with the binary is not installed: npm install longstack-${platform}@${version}$`), { isReported: true })
  })
}

test('a binary can be built if there is a compiler; otherwise the command says so', async (t) => {
  const { app, home, binary: carried } = copy(t, process.versions.modules)
  fs.rmSync(carried, { force: true })
  const binary = path.join(home, 'native', 'prebuilds', platform, path.basename(carried))
  const build = (/** @type {string[]} */ args, /** @type {Record<string, string>} */ env = {}) =>
    run(process.execPath, [path.join(home, 'native', 'build.js'), ...args], { cwd: home, env })

  const none = { CXX: path.join(app, 'no-such-compiler') }
  const loud = await build([], none)
  t.is(loud.code, 1)
  t.regex(loud.stderr, /^longstack: the native engine was not built: there is no C\+\+ compiler \(.+no-such-compiler\)\n$/)
  const quiet = await build(['--quiet'], none)
  t.deepEqual([quiet.code, quiet.stdout], [0, ''])
  t.regex(quiet.stderr, /^longstack: the native engine was not built: [^\n]+\n$/)
  t.is((await say(process.execPath, PROGRAM, [], app)).said.engine, 'js')

  if (runsAll) { // npm run binaries compiles for all versions; building takes a minute of a busy machine
    const built = await build([])
    t.deepEqual([built.code, built.stderr], [0, ''])
  } else if (has(process.versions.modules)) {
    fs.mkdirSync(path.dirname(binary), { recursive: true })
    fs.copyFileSync(carriedFor(process.versions.modules), binary)
  } else {
    return skip(t, 'there is no binary to keep')
  }
  t.is((await say(process.execPath, PROGRAM, [], app)).said.engine, 'native')
  const { mtimeMs } = fs.statSync(binary)
  t.deepEqual(await build(['--quiet']), { code: 0, signal: null, stdout: '', stderr: '' })
  t.is(fs.statSync(binary).mtimeMs, mtimeMs, 'what is made is kept')
  fs.utimesSync(path.join(home, 'native', 'walker.h'), new Date(), new Date())
  const stale = await build(['--quiet'], { CXX: 'false' })
  t.regex(stale.stderr, /^longstack: the native engine was not built: [^\n]+\n$/, 'older than its source: compiled again')
})
