'use strict'

// Every way to load longstack from CommonJS and from ESM, inside the checkout and as a dependency.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, program, register, root, split } = require('../helpers/run')

/**
 * A program inside the checkout, where the package may name itself.
 * @param {string} source
 * @param {string[]} [args]
 */
const inside = (source, args = []) => node([...args, '--input-type=module', '-e', source], { cwd: root })

/**
 * @param {import('ava').ExecutionContext} t
 * @param {Record<string, string>} files
 * @returns {string} a folder with longstack installed
 */
function project (t, files) {
  const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'longstack-modules-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const home = path.join(folder, 'node_modules', 'longstack')
  for (const name of ['package.json', 'index.js', 'lib']) fs.cpSync(path.join(root, name), path.join(home, name), { recursive: true })
  for (const name of ['chalk', 'source-map-support', 'source-map', 'buffer-from']) {
    fs.symlinkSync(path.join(root, 'node_modules', name), path.join(folder, 'node_modules', name))
  }
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), text)
  return folder
}

test('the default import, the named imports and require are one object', async (t) => {
  const { stdout, stderr } = await inside(`
    import { createRequire } from 'node:module'
    import trace, * as names from 'longstack'
    const required = createRequire(process.cwd() + '/x.js')('longstack')
    console.log(trace === required)
    const { default: byDefault, ...named } = names
    console.log(byDefault === trace, Object.keys(named).every((name) => named[name] === trace[name]))
    console.log(Object.keys(trace).filter((name) => !(name in named)).join())`)
  t.is(stderr, '')
  t.deepEqual(stdout.split('\n'), ['true', 'true true', 'enabled', ''], 'every method has a named import')
})

test('named functions do not use this', async (t) => {
  const { stdout, stderr } = await inside(`
    import trace, { bind, chain, current, disable, enable, handles, hook, on, onError, stack, stats, why } from 'longstack'
    enable(['TIMER'])
    const other = setTimeout(() => {}, 1e6)
    const timer = setTimeout(() => {
      console.log(chain()[0].type, stack().includes('setTimeout(1)'), current().type, why(timer).what !== '', handles(['TIMER']).length, stats().enabled)
      hook({ init () {} })(); on('warning', () => {})(); onError(() => {})()
      console.log(bind(() => 'bound')())
      clearTimeout(other)
      disable()
      console.log(trace.enabled)
    }, 1)`)
  t.is(stderr, '')
  t.is(stdout, 'Timeout true Timeout true 1 true\nbound\nfalse\n')
})

for (const [name, args] of Object.entries({
  '-r longstack/register': ['-r', 'longstack/register'],
  '--import longstack/register': ['--import', 'longstack/register'],
  'both, and both twice': ['-r', 'longstack/register', '-r', 'longstack/register', '--import', 'longstack/register']
})) {
  test(`${name} works inside the checkout and as a dependency`, async (t) => {
    const source = "function start () { setTimeout(() => console.log(new Error('x').stack), 1) }; start()"
    const folder = project(t, { 'main.js': source, 'main.mjs': source })
    const runs = await Promise.all([
      node([...args, '-e', source], { cwd: root }),
      node([...args, path.join(folder, 'main.js')], { cwd: folder }),
      node([...args, path.join(folder, 'main.mjs')], { cwd: folder }),
      node([path.join(folder, 'main.js')], { cwd: folder, env: { NODE_OPTIONS: args.join(' ') } })
    ])
    for (const { stdout, stderr, code } of runs) {
      t.is(code, 0, stderr)
      t.is(stderr, '')
      const { hops } = split(stdout)
      t.is(hops.length, 1, stdout)
      t.regex(hops[0].frames, /at start /)
    }
  })
}

test('node -r longstack/register x.js works inside the checkout', async (t) => {
  const file = path.join(root, `.program-${process.pid}.js`)
  t.teardown(() => fs.rmSync(file, { force: true }))
  fs.writeFileSync(file, "setTimeout(() => console.log(new Error('x').stack), 1)")
  const { stdout, stderr } = await node(['-r', 'longstack/register', path.basename(file)], { cwd: root })
  t.is(stderr, '')
  t.is(split(stdout).hops.length, 1)
})

test('package.json can be required; internal files cannot', async (t) => {
  const folder = project(t, {
    'main.js': `
      console.log(require('longstack/package.json').name, require.resolve('longstack') === require.resolve('./node_modules/longstack/index.js'))
      for (const name of ['lib/tracer', 'lib/tracer.js', 'register.js']) try { require('longstack/' + name) } catch (error) { console.log(error.code) }`
  })
  const { stdout } = await node([path.join(folder, 'main.js')])
  t.deepEqual(stdout.split('\n'), ['longstack true', ...Array(3).fill('ERR_PACKAGE_PATH_NOT_EXPORTED'), ''])
})

test('two copies of the package in one process share one tracer', async (t) => {
  const folder = project(t, {
    'main.js': `
      const one = require('longstack')
      const two = require(${JSON.stringify(root)})
      console.log(one === two)
      one.enable()
      setTimeout(() => { console.log(two.enabled, two.chain().length, new Error('x').stack.split('──').length); two.disable(); console.log(one.enabled) }, 1)`
  })
  const { stdout, stderr } = await node([path.join(folder, 'main.js')])
  t.is(stderr, '')
  t.is(stdout, 'true\ntrue 1 3\nfalse\n')
})

test('an ESM program has the whole chain of an error after several hops', async (t) => {
  const { stdout, stderr, code } = await program(`
    import { readFile } from 'node:fs/promises'
    import { setTimeout as pause } from 'node:timers/promises'

    async function load () {
      await readFile(new URL(import.meta.url))
      await pause(1)
      parse()
    }
    function parse () {
      setTimeout(function soon () {
        setImmediate(function fail () { console.log(new Error('x').stack); throw new Error('uncaught') })
      }, 2)
    }
    async function main () {
      await load()
    }
    setTimeout(function begin () { main() }, 1)`, { type: 'mjs' })
  t.is(code, 1)
  for (const text of [stdout, stderr]) {
    const { head, hops } = split(text)
    t.regex(head, /at Immediate\.fail (?:\[as _onImmediate\] )?\(file:/)
    const labels = hops.map((hop) => hop.title.split(' · ')[0])
    t.deepEqual(labels.filter((label) => /^set/.test(label)), ['setImmediate', 'setTimeout(2)', 'setTimeout(1)'], text)
    t.regex(hops[0].frames, /at soon .*program\.mjs:12:9/)
    t.regex(hops[1].frames, /at parse .*program\.mjs:11:7.*\n {4}at load .*program\.mjs:8:7/, text)
    t.regex(hops.slice(1).map((hop) => hop.frames).join(''), /at (?:async )?main .*[^]*at begin/, text)
    // Without the native engine only the reader is known.
    if (process.env.ENGINE !== 'js') t.false(text.includes('reader:'), text)
  }
})

test('code after a top-level await in ESM has a chain', async (t) => {
  const { stdout, stderr } = await program(`
    await new Promise((resolve) => setTimeout(resolve, 1))
    await new Promise((resolve) => setImmediate(resolve))
    setTimeout(function after () { console.log(new Error('x').stack) }, 1)`, { type: 'mjs' })
  t.is(stderr, '')
  const { hops } = split(stdout)
  t.regex(hops[0].title, /^setTimeout\(1\)/)
  t.regex(hops[0].frames, /program\.mjs:4:5/)
})

test('an ESM program can enable longstack itself, with and without promises in the filter', async (t) => {
  for (const filter of ["['*']", "['TIMER']", "['*', '-PROMISE']"]) {
    const { stdout, stderr, code } = await inside(`
      import trace from 'longstack'
      const tell = () => console.log(trace.chain().filter((hop) => hop.type === 'Timeout').length, trace.stats().fault)
      trace.enable(${filter})
      await null
      await new Promise((resolve) => setTimeout(function timer () { tell(); resolve() }, 1))
      setTimeout(() => setTimeout(tell, 1), 1)`)
    t.is(code, 0, stderr)
    t.is(stderr, '')
    t.is(stdout, '1 undefined\n2 undefined\n', filter)
  }
})

test('a dynamic import and a rejected one have chains', async (t) => {
  const { stdout, stderr } = await program(`
    setTimeout(async function start () {
      const { join } = await import('node:path')
      console.log(typeof join)
      try { await import('./missing.mjs') } catch (error) { console.log(error.code, typeof error.stack) }
    }, 1)`)
  t.is(stderr, '')
  t.is(stdout, 'function\nERR_MODULE_NOT_FOUND string\n')
})

test('module hooks of the program do not affect longstack', async (t) => {
  const folder = project(t, {
    'main.mjs': `
      import { register } from 'node:module'
      register('data:text/javascript,' + encodeURIComponent('export async function resolve (specifier, context, next) { return next(specifier, context) }'))
      await import('./other.mjs')`,
    'other.mjs': "setTimeout(() => console.log(new Error('x').stack), 1)"
  })
  const bare = await node(['--no-deprecation', path.join(folder, 'main.mjs')])
  const traced = await node(['--no-deprecation', '-r', register, path.join(folder, 'main.mjs')])
  t.is(traced.code, bare.code)
  t.is(traced.stderr, bare.stderr)
  t.regex(traced.stdout, /── setTimeout\(1\)/)
})
