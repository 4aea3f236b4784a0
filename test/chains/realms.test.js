'use strict'

// Errors of vm contexts, and formatters with private source maps, as in test runners.

const test = require('ava')
const { program, root, split } = require('../helpers/run')

const prelude = `
  const trace = require(${JSON.stringify(root)})
  const vm = require('node:vm')
  const told = {}
  const names = (error) => trace.chain(error).map(({ label, origin }) => label + (origin === 'registered' ? '' : ' ' + origin))
  const realm = (code, more) => vm.runInContext(code, vm.createContext({ setTimeout, told, names, trace, ...more }), { filename: '/realm.js' })
  process.on('exit', () => console.log(JSON.stringify(told)))
`

/** @param {import('ava').ExecutionContext} t @param {string} source @param {Record<string, string>} [env] */
async function answers (t, source, env = {}) {
  const { stdout, stderr, code } = await program(prelude + source, { env, args: ['--no-warnings', '--experimental-vm-modules'] })
  t.is(stderr, '')
  t.is(code, 0)
  return JSON.parse(stdout)
}

const made = `setTimeout(function outer () { setTimeout(function inner () {
  told.stack = new TypeError('x').stack
  const kept = new Error('kept')
  setTimeout(() => { told.kept = names(kept); told.text = trace.stack(kept); told.own = kept.stack }, 1)
}, 1) }, 1)`

/** An age is told as of when the stack is read. @param {string} text */
const ageless = (text) => text.replaceAll(/\d+ ms earlier/g, 'earlier')

for (const env of [{}, { LONGSTACK_CAPTURE: 'js' }]) {
  test(`an error of a vm context is extended (${Object.values(env).join() || 'full'})`, async (t) => {
    const found = await answers(t, `realm(${JSON.stringify(made)})`, env)
    const { head, hops } = split(found.stack)
    t.regex(head, /^TypeError: x\n {4}at .*inner.*\/realm\.js:2:/)
    t.deepEqual(hops.map(({ title }) => title.split(' · ')[0]), ['setTimeout(1)', 'setTimeout(1)'])
    t.regex(hops[0].frames, /outer \(\/realm\.js:1:/)
  })
}

test('an error of a vm.SourceTextModule is extended', async (t) => {
  const found = await answers(t, `;(async () => {
    const context = vm.createContext({ setTimeout, told, names, trace })
    const module = new vm.SourceTextModule(${JSON.stringify(made)}, { context, identifier: '/realm.mjs' })
    await module.link(() => {})
    await module.evaluate()
  })()`)
  t.deepEqual(split(found.stack).hops.map(({ title }) => title.split(' · ')[0]).slice(0, 2), ['setTimeout(1)', 'setTimeout(1)'])
})

test("a realm's own formatter formats, and hops follow; if errors are short, trace.chain has the chain", async (t) => {
  const own = "let calls = 0; told.calls = () => calls; Error.prepareStackTrace = (error, sites) => { calls++; return 'OWN ' + error.message + ' ' + sites.length }\n"
  for (const env of [{}, { LONGSTACK_ERRORS: 'off' }]) {
    const found = await answers(t, `realm(${JSON.stringify(own + made)}); process.once('exit', () => { told.calls = told.calls() })`, env)
    const isShort = env.LONGSTACK_ERRORS === 'off'
    t.regex(found.stack, isShort ? /^OWN x \d+$/ : /^OWN x \d+\n {2}── setTimeout\(1\)/)
    t.regex(found.own, isShort ? /^OWN kept \d+$/ : /^OWN kept \d+\n {2}── setTimeout\(1\)/)
    t.is(found.calls, undefined)
    t.deepEqual(found.kept, ['setTimeout(1)', 'setTimeout(1)'], "the maker's, though its formatter is not longstack's")
    t.true(ageless(found.text).startsWith(isShort ? `${found.own}\n  ── setTimeout(1)` : ageless(found.own)))
  }
})

test('a formatter that maps is called for the positions of hops, also in vm contexts', async (t) => {
  const found = await answers(t, `
    const shifted = (site) => { const line = String(site); return line.replace(/realm\\.js:(\\d+):/, (_, number) => 'realm.ts:' + (Number(number) + 100) + ':') }
    Error.prepareStackTrace = (error, sites) => [String(error.name + ': ' + error.message), ...sites.map((site) => '    at ' + shifted(site))].join('\\n')
    realm(${JSON.stringify(made)})`)
  const { head, hops } = split(found.stack)
  t.regex(head, /realm\.ts:102:/)
  t.regex(hops[0].frames, /\/realm\.ts:101:/)
  t.notRegex(found.stack, /realm\.js/)
})

test("a realm's own mapping formatter is called for the positions of hops", async (t) => {
  const own = "Error.prepareStackTrace = (error, sites) => ['Error: x', ...sites.map((site) => '    at ' + String(site).replace('realm.js', 'realm.ts'))].join('\\n')\n"
  const found = await answers(t, `realm(${JSON.stringify(own + made)})`)
  t.true(found.text.startsWith(`${found.own.split('\n  ──', 1)[0]}\n  ── setTimeout(1)`))
  t.regex(split(found.text).hops[0].frames, /\/realm\.ts:2:/)
})

test('a formatter that maps nothing is called by Node alone', async (t) => {
  const found = await answers(t, `
    told.seen = []
    Error.prepareStackTrace = (error, sites) => { told.seen.push(error.message); return [String(error), ...sites.map((site) => '    at ' + site)].join('\\n') }
    setTimeout(function outer () { setTimeout(function inner () { told.stack = new Error('x').stack }, 1) }, 1)`)
  t.deepEqual(found.seen, ['x'])
  t.is(split(found.stack).hops.length, 2)
})

test('a mapping formatter that was removed is no longer called', async (t) => {
  const found = await answers(t, `
    const before = Error.prepareStackTrace
    Error.prepareStackTrace = (error, sites) => ['Error: x', ...sites.map((site) => '    at ' + String(site).replace('program.cjs', 'program.cts'))].join('\\n')
    setTimeout(function outer () { setTimeout(function inner () {
      told.mapped = new Error('x').stack
      Error.prepareStackTrace = before
      setTimeout(() => { told.plain = new Error('x').stack }, 1)
    }, 1) }, 1)`)
  t.notRegex(found.mapped, /program\.cjs/)
  t.notRegex(found.plain, /program\.cts/)
})
