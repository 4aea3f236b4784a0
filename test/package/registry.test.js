'use strict'

// A release published under a scope to a local registry, and the result of installing it by that name: one
// binary, and every entry, text and example under that name.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { ABIS, binaryName, findFile, ownDirectory, ownManifest, target } = require('../../lib/platform')
const { targets } = require('../../native/targets')
const { OFFLINE, copyCheckout, run, strict } = require('../helpers/installed')
const { startRegistry } = require('../helpers/registry')
const { root, runsAll } = require('../helpers/run')
const { skip } = require('../helpers/skip')

const SCOPE = '@scope'
const NAME = `${SCOPE}/longstack`
const PLATFORM = `${NAME}-${target()}`
const { version } = ownManifest()
const NEXT = '99.0.0'
const engine = findFile(binaryName(process.versions.modules)) === undefined ? 'js' : 'native'
const binaries = Object.values(ABIS).map(binaryName)
const hasBinaries = binaries.every((name) => fs.existsSync(path.join(ownDirectory(), name)))

const STATE = `
  const trace = require('${NAME}')
  const { bundles } = require(require('node:path').join(require.resolve('${NAME}/register'), '../start'))
  const refused = bundles().map((bundle) => bundle?.script.cachedDataRejected ?? 'no code')
  setTimeout(function later () {
    const { engine } = trace.stats()
    console.log(JSON.stringify({ engine, refused, stack: new Error('told').stack, doctor: trace.doctor().text }))
  }, 1)`

const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-registry-')))
const copy = path.join(folder, 'copy')
const app = path.join(folder, 'app')
const home = path.join(app, 'node_modules', NAME)
/** @type {Awaited<ReturnType<typeof startRegistry>>} */
let registry
/** @type {string | undefined} why nothing is tried here */
let reason

test.before(async (t) => {
  t.timeout(480_000)
  registry = await startRegistry(path.join(folder, 'registry'))
  if ('offline' in registry) reason = registry.offline
  if (!hasBinaries && !strict) reason = `there are not all binaries for ${target()}: npm run binaries`
  if (reason !== undefined || 'offline' in registry) return
  copyCheckout(copy)
  fs.writeFileSync(path.join(copy, '.npmrc'), registry.npmrc(SCOPE))
  await git('init', '--quiet')
  fs.writeFileSync(path.join(copy, '.git', 'info', 'exclude'), '.npmrc\nnode_modules\n')
  await git('add', '.')
  await git('-c', 'user.name=test', '-c', 'user.email=test@localhost', 'commit', '--quiet', '-m', 'all')
})

test.after.always(() => {
  if (registry !== undefined && 'stop' in registry) registry.stop()
  fs.rmSync(folder, { recursive: true, force: true })
})

/** @param {string[]} args */
async function git (...args) {
  const { code, stderr } = await run('git', args, { cwd: copy })
  if (code !== 0) throw new Error(stderr)
}

/** @param {string[]} args */
const release = (...args) => run(process.execPath, [path.join(copy, 'publish', 'index.js'), `--name=${NAME}`, ...args], { cwd: copy })

/** @param {string} directory @param {string[]} args */
async function npm (directory, ...args) {
  const settings = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', '--fetch-retries=1']
  return run('npm', [...args, ...settings], { cwd: directory })
}

/** Makes a folder whose npm knows the registry. @param {string} directory */
function makeApp (directory) {
  fs.mkdirSync(directory)
  fs.writeFileSync(path.join(directory, 'package.json'), '{ "private": true }')
  fs.copyFileSync(path.join(copy, '.npmrc'), path.join(directory, '.npmrc'))
}

/** @param {string} directory @param {string[]} [args] */
async function stateOf (directory, args = ['-r', `${NAME}/register`]) {
  const { code, stdout, stderr } = await run(process.execPath, [...args, '-e', STATE], { cwd: directory })
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

/**
 * Tests one after the other.
 * @param {string} title
 * @param {(t: import('ava').ExecutionContext) => Promise<void>} work
 */
function serial (title, work) {
  test.serial(title, async (t) => {
    t.timeout(240_000)
    if (reason !== undefined) return skip(t, reason)
    await work(t)
  })
}

serial('a release is rejected while binaries are missing or the tree has changes', async (t) => {
  const missing = Object.keys(targets).find((name) => !fs.existsSync(ownDirectory(name)))
  fs.writeFileSync(path.join(copy, 'new.txt'), '')
  const { code, stdout, stderr } = await release()
  fs.rmSync(path.join(copy, 'new.txt'))
  t.is(code, 1)
  t.is(stdout, '')
  t.regex(stderr, /longstack: not published:\n- The tree has changes that are not committed\.\n$/)
  if (missing === undefined) return
  const incomplete = await release()
  t.is(incomplete.code, 1)
  t.true(incomplete.stderr.includes(`- Binaries for ${missing} are missing: longstack.abi115.node, `), incomplete.stderr)
})

if (runsAll) {
  serial('a release from a clone without binaries contains those of every version', async (t) => {
    const present = path.join(copy, 'native', 'prebuilds')
    fs.renameSync(present, `${present}.kept`)
    const { code, stdout, stderr } = await release('--dry-run')
    t.is(code, 0, stderr)
    t.regex(stdout, /^@scope\/longstack-linux-x64: \d+ kB, \d+ kB of them binaries/m)
    const packed = fs.readdirSync(path.join(copy, 'release', 'packages', target()))
    t.deepEqual(packed.filter((name) => name.endsWith('.node')).sort(), binaries)
    for (const name of [present, path.join(copy, 'release')]) fs.rmSync(name, { recursive: true })
    fs.renameSync(`${present}.kept`, present)
  })
}

serial('a release publishes the main package last, once', async (t) => {
  for (const name of Object.keys(targets)) { // installed on no platform but this one
    for (const binary of binaries) {
      const file = path.join(copy, 'native', 'prebuilds', name, binary)
      if (fs.existsSync(file)) continue
      fs.mkdirSync(path.dirname(file), { recursive: true })
      fs.writeFileSync(file, 'a binary')
    }
  }
  const { code, stdout, stderr } = await release('--no-provenance')
  t.is(code, 0, stderr)
  t.log(stdout.trim())
  const published = stdout.match(/(?<=^published ).*/gm) ?? []
  t.is(published.length, Object.keys(targets).length + 1)
  t.is(published.at(-1), `scope-longstack-${version}.tgz`)
  const again = await release('--no-provenance')
  t.is(again.code, 1)
  t.true(again.stderr.includes(`- ${NAME}@${version} is published already.`), again.stderr)
})

serial('installing by name brings one binary package, and everything works under that name', async (t) => {
  makeApp(app)
  const { code, stderr } = await npm(app, 'install', NAME)
  if (code !== 0 && OFFLINE.test(stderr) && !strict) {
    reason = `npm has no network: ${stderr.match(OFFLINE)?.[0]}`
    return skip(t, reason)
  }
  t.is(code, 0, stderr)
  t.deepEqual(fs.readdirSync(path.join(app, 'node_modules', SCOPE)).sort(), [NAME, PLATFORM].map((name) => path.basename(name)))
  const { packages } = JSON.parse(fs.readFileSync(path.join(app, 'node_modules', '.package-lock.json'), 'utf8'))
  const all = Object.keys(packages)
  const bytes = all.map((name) => sizeOf(path.join(app, name)))
  t.log(`${all.length} packages, ${Math.round(bytes.reduce((a, b) => a + b) / 1000)} kB unpacked: ${all.map((name, i) =>
    `${name.slice('node_modules/'.length)} ${Math.round(bytes[i] / 1000)}`).join(', ')}`)

  const code22 = Number(process.versions.node.split('.')[0]) >= 22 ? false : 'no code'
  const required = await stateOf(app)
  t.like(required, { engine, refused: [code22, code22] })
  t.regex(required.stack, /^Error: told\n {4}at [^]* {2}── setTimeout\(1\) · /)
  t.true(required.doctor.includes(path.join(app, 'node_modules', PLATFORM)), required.doctor)
  t.like(await stateOf(app, ['--import', `${NAME}/register`]), { engine })

  const off = await run(process.execPath, ['-p', `require('${NAME}').doctor().notes.join()`], { cwd: app })
  t.regex(off.stdout, /Tracing is off\. Call trace\.enable\(\), or start with node -r @scope\/longstack\/register\./)
  const bin = path.join(app, 'node_modules', '.bin', 'longstack')
  const help = await run(bin, ['run', '--help'], { cwd: app })
  t.regex(help.stdout, /like node -r @scope\/longstack\/register\./)
  const ran = await run(bin, ['doctor', '--json'], { cwd: app })
  t.like(JSON.parse(ran.stdout), { longstack: version, engine, enabled: true })

  fs.writeFileSync(path.join(app, 'all.mjs'), `import trace, { enable } from '${NAME}'\nimport '${NAME}/register'\nconsole.log(trace.enabled, enable === trace.enable)`)
  t.is((await run(process.execPath, ['all.mjs'], { cwd: app })).stdout, 'true true\n')
  fs.writeFileSync(path.join(app, 'types.mts'), `import trace, { type Hop } from '${NAME}'\nexport const hops: Hop[] = trace.chain()\n// @ts-expect-error\ntrace.enable({ frames: 'ten' })\n`)
  const tsc = require.resolve('typescript/bin/tsc')
  const typed = await run(process.execPath, [tsc, '--noEmit', '--strict', '--module', 'nodenext', '--types', 'node',
    '--typeRoots', path.join(root, 'node_modules', '@types'), 'types.mts'], { cwd: app })
  t.is(typed.code, 0, typed.stdout)
})

/** @param {string} directory @returns {number} bytes of its files, without packages in it */
function sizeOf (directory) {
  return fs.readdirSync(directory, { withFileTypes: true }).filter(({ name }) => name !== 'node_modules').reduce((sum, entry) => {
    const file = path.join(directory, entry.name)
    return sum + (entry.isDirectory() ? sizeOf(file) : fs.statSync(file).size)
  }, 0)
}

serial('no text uses the package\'s other name, and every required name resolves', async (t) => {
  const texts = [...filesIn(home)].filter((file) => /\.(md|d\.m?ts)$|\/examples\/.*\.js$/.test(file))
  t.true(texts.length > 50)
  let specifiers = 0
  const { exports: entries } = JSON.parse(fs.readFileSync(path.join(home, 'package.json'), 'utf8'))
  for (const file of texts) {
    const text = fs.readFileSync(file, 'utf8')
    const label = path.relative(home, file)
    const unscoped = text.match(/.*(?<!@scope\/)\blongstack(?:\/(?:register|ava|jest|vitest|mocha|node-test)\b|(?<=npm install longstack)|-linux-x64).*|.*\b(?:require\(|from |import\()'longstack['/].*|.*\bnpx (?:--no )?(?:-- )?longstack.*/g)
    t.deepEqual(unscoped, null, label)
    t.false(/npm (install|pack)\b.*\.tgz|<!-- (checkout|published)/.test(text), label)
    for (const [, entry] of text.matchAll(/@scope\/longstack(\/[\w-]+)?(?![\w/-])/g)) {
      t.true(Object.hasOwn(entries, `.${entry ?? ''}`), `${label}: ${entry}`)
      specifiers++
    }
  }
  t.true(specifiers > 60, String(specifiers))
  const readme = fs.readFileSync(path.join(home, 'README.md'), 'utf8')
  t.true(readme.includes(`\n    npm install ${NAME}\n`))
  t.true(fs.readFileSync(path.join(home, 'docs', 'install.md'), 'utf8').includes(`node_modules/${NAME}/lib/register.js`))
  t.true(readme.startsWith('# longstack\n'), 'the product keeps its name')
})

/** @param {string} directory @returns {Generator<string>} */
function * filesIn (directory) {
  for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
    const file = path.join(directory, entry.name)
    if (entry.name === 'node_modules') continue
    if (entry.isDirectory()) yield * filesIn(file)
    else yield file
  }
}

serial('the examples run from an installed package', async (t) => {
  for (const name of ['start', 'propagate', 'subsystem-filter', 'error-tracing', 'timers', 'why-connection', '02-tcp-net-http']) {
    const args = ['-r', `${NAME}/register`, path.join(home, 'examples', `${name}.js`)]
    const { code, stderr } = await run(process.execPath, args, { cwd: app })
    t.is(code, 0, `${name}: ${stderr}`)
  }
})

serial('without optional dependencies the JavaScript engine works, and doctor says what to install', async (t) => {
  const bare = path.join(folder, 'bare')
  makeApp(bare)
  const { code, stderr } = await npm(bare, 'install', '--omit=optional', NAME)
  t.is(code, 0, stderr)
  t.deepEqual(fs.readdirSync(path.join(bare, 'node_modules', SCOPE)), ['longstack'])
  const found = await stateOf(bare)
  t.like(found, { engine: 'js', refused: ['no code', 'no code'] })
  t.true(found.doctor.includes(`is not installed: npm install ${PLATFORM}@${version}`), found.doctor)
  t.regex(found.stack, / {2}── setTimeout\(1\) · /)
})

serial('an upgrade also upgrades the package of its platform', async (t) => {
  const { writePackages } = require(path.join(copy, 'publish', 'packages.js'))
  for (const name of Object.keys(targets).filter((name) => name !== target())) {
    fs.rmSync(path.join(copy, 'native', 'prebuilds', name), { recursive: true })
  }
  for (const { directory } of writePackages(path.join(folder, 'next'), { name: NAME, version: NEXT })) {
    fs.copyFileSync(path.join(copy, '.npmrc'), path.join(directory, '.npmrc'))
    const { code, stderr } = await npm(directory, 'publish', '--access=public')
    t.is(code, 0, stderr)
  }
  const { code, stderr } = await npm(app, 'install', '--prefer-online', `${NAME}@${NEXT}`)
  t.is(code, 0, stderr)
  const manifest = path.join(app, 'node_modules', PLATFORM, 'package.json')
  t.is(JSON.parse(fs.readFileSync(manifest, 'utf8')).version, NEXT)
  t.is((await stateOf(app)).engine, engine)
})

serial('copies under two names trace once', async (t) => {
  const other = path.join(folder, 'other')
  const { writePackages } = require(path.join(copy, 'publish', 'packages.js'))
  const packages = writePackages(path.join(folder, 'renamed'), { name: 'another-name', version: NEXT })
  fs.mkdirSync(path.join(other, 'node_modules'), { recursive: true })
  for (const { name, directory } of packages) fs.renameSync(directory, path.join(other, 'node_modules', name))
  fs.symlinkSync(path.join(root, 'node_modules', 'chalk'), path.join(other, 'node_modules', 'chalk'))
  fs.symlinkSync(path.join(root, 'node_modules', 'source-map-support'), path.join(other, 'node_modules', 'source-map-support'))
  fs.symlinkSync(path.join(app, 'node_modules', SCOPE), path.join(other, 'node_modules', SCOPE))
  const { code, stdout, stderr } = await run(process.execPath, ['-r', 'another-name/register', '-e', `
    const trace = require('${NAME}')
    const { problems, copies } = trace.doctor()
    console.log(JSON.stringify([trace === require('another-name'), copies, problems.map(({ code }) => code)]))`], { cwd: other })
  t.is(code, 0, stderr)
  const [isSame, copies, codes] = JSON.parse(stdout)
  t.true(isSame)
  t.is(copies.length, 2)
  t.regex(copies[0], /another-name$/)
  t.true(codes.includes('SEVERAL_COPIES'))
})
