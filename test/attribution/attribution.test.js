'use strict'

// Attribution of errors: every way to create an error, read in three places, in strict and in sloppy
// code.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { loadBinding } = require('../../lib/stacks/binding')
const { node, split, withoutHops, register } = require('../helpers/run')
const cases = require('../fixtures/attribution/cases')

const fixtures = path.join(__dirname, '..', 'fixtures', 'attribution')
const readings = ['same', 'later', 'stranger']
const ROOMY = '--min-semi-space-size=16' // MB: no collection comes between the making and the reading

/**
 * Where nobody but the reader is known, by engine; elsewhere it is proven whose error it is, wherever it is
 * read. Without the addon nothing tells runs of one function apart.
 */
const unproven = {
  js: (name, language) => !(name === 'startUp' || name === 'connect' || (language === 'sloppy' && provenByReceiver.includes(name))),
  native: () => false
}

/** A receiver is seen in sloppy code only: there these are proven wherever they are read, with any engine. */
const provenByReceiver = ['timerCaught', 'immediate', 'errorEvent', 'aggregateMember']

const why = loadBinding().failure?.code
const engines = [{ name: 'js', env: { LONGSTACK_CAPTURE: 'js' } }]
if (why === undefined) engines.push({ name: 'native', env: { LONGSTACK_CAPTURE: 'native' } })

test('both engines are available', async (t) => {
  if (why !== undefined) {
    // a binary is made where there is a compiler; where there is none, one engine is tested
    t.log(`the native engine is not tested: ${why}`)
    return t.falsy(process.env.CI || process.env.NODES === 'all', why)
  }
  for (const { name, env } of engines) {
    const { stdout } = await node(['-r', register, '-p', 'require("longstack").stats().engine'], { env })
    t.is(stdout.trim(), name)
  }
})

const sloppy = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-sloppy-'))
for (const file of ['cases.js', 'run.js']) {
  fs.writeFileSync(path.join(sloppy, file), fs.readFileSync(path.join(fixtures, file), 'utf8').replace("'use strict'", ''))
}
test.after.always(() => fs.rmSync(sloppy, { recursive: true }))

for (const { name: engine, env } of engines) {
  for (const [language, folder] of [['strict', fixtures], ['sloppy', sloppy]]) {
    const together = playedTogether(folder, env)
    for (const name of Object.keys(cases)) {
      test(`${name}, ${language}, ${engine}`, async (t) => {
        const creator = name === 'deep' ? /at deep/ : /creator/
        const must = name === 'startUp' ? '-' : !unproven[engine](name, language)
        for (const reading of readings) await play(t, { folder, env, together, name, reading, must, creator })
      })
    }

    if (language === 'sloppy') continue
    test(`the cause of a failed fetch has the chain of its connection, ${engine}`, async (t) => {
      // The JavaScript engine keeps fewer of Node's frames: it loses fetch behind undici's 34.
      const creator = engine === 'js' ? /creator|fetchRefused/ : /creator/
      const setting = { folder, env, together, name: 'fetchRefused', must: true, creator, property: 'cause' }
      for (const reading of readings) await play(t, { ...setting, reading })
    })
  }
}

/**
 * Plays cases in one process.
 * @param {string} folder
 * @param {Record<string, string>} env
 * @param {string} reading
 * @param {string[]} names
 * @returns {Promise<Record<string, { stack: string, cause?: string }>>} by case
 */
async function playCases (folder, env, reading, names) {
  const run = path.join(folder, 'run.js')
  const { stdout, stderr, code } = await node([ROOMY, '-r', register, run, reading, ...names], { env })
  if (code !== 0 || stderr !== '') throw new Error(`${reading}: ended with ${code}: ${stderr}${stdout}`)
  return Object.fromEntries(stdout.trim().split('\n').map((line) => JSON.parse(line)).map((played) => [played.name, played]))
}

/**
 * Returns what plays all cases in one process for each reading, on first use.
 * @param {string} folder
 * @param {Record<string, string>} env
 * @returns {(reading: string) => ReturnType<typeof playCases>}
 */
function playedTogether (folder, env) {
  /** @type {Record<string, ReturnType<typeof playCases>>} */
  const played = {}
  return (reading) => (played[reading] ??= playCases(folder, env, reading, Object.keys(cases)))
}

/** The clock does not know a callback in which V8 goes on to another page: a young process has some. */
const ATTEMPTS = 6

/**
 * Judges a case that was played beside all others, and then, until its creator is proven, alone and several
 * times. Whatever is reported each time has to be true.
 * @param {import('ava').ExecutionContext} t
 * @param {object} setting
 */
async function play (t, { folder, env, together, name, property = 'stack', ...expected }) {
  const { reading, must } = expected
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const played = await (attempt === 0 ? together(reading) : playCases(folder, env, reading, [name]))
    const stack = played[name][property]
    const isProven = !/ · reader/.test(stack)
    judge(t, stack, { ...expected, name, must: must === '-' ? '-' : must && isProven })
    if (must !== true || isProven) return
  }
  t.fail(`${reading}: the creator is proven`)
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string} stack
 * @param {object} expected
 * @param {string} expected.name of the case
 * @param {string} expected.reading where it was read
 * @param {boolean | '-'} expected.must whether the creator is proven there; `-`: there are no hops
 * @param {RegExp} expected.creator
 */
function judge (t, stack, { name, reading, must, creator }) {
  const { hops } = split(stack)
  const known = hops.filter((hop) => !/ · reader/.test(hop.title))
  const text = known.map((hop) => hop.frames).join('\n')
  t.notRegex(text, /stranger/, `${reading}: no stranger is named as the creator\n${stack}`)
  const creators = text.match(/\bcreator\w*/g) ?? []
  t.deepEqual(creators.filter((found) => !String(cases[name]).includes(found)), [], `${reading}: of this case\n${stack}`)
  if (must === '-') return t.is(hops.length, 0, `${reading}: made before any asynchronous step\n${stack}`)
  t.true(hops.length > 0, `${reading}: at least the reader is told\n${stack}`)
  if (must) t.is(known.length, hops.length, `${reading}: the creator is proven\n${stack}`)
  if (known.length > 0) t.regex(stack, creator, `${reading}: if somebody is named, it is the creator\n${stack}`)
}

const escapes = {
  timer: 'setTimeout(function creator () { throw new Error("out") }, 2)',
  immediate: 'setTimeout(function creator () { setImmediate(() => { throw new Error("out") }) }, 2)',
  microtask: 'setTimeout(function creator () { queueMicrotask(() => { throw new Error("out") }) }, 2)',
  tick: 'setTimeout(function creator () { process.nextTick(() => { throw new Error("out") }) }, 2)',
  scope: `const { AsyncResource } = require('node:async_hooks'); let job
    setTimeout(function creator () { job = AsyncResource.bind(function later () { throw new Error("out") }) }, 2)
    setTimeout(function stranger () { job() }, 6)`,
  event: 'setTimeout(function creator () { require("node:net").connect(1, "127.0.0.1") }, 2)',
  rejection: 'setTimeout(function creator () { rejects() }, 2); async function rejects () { await null; throw new Error("out") }',
  rejectionInTimer: 'setTimeout(function creator () { new Promise((_, reject) => setTimeout(() => reject(new Error("out")), 2)) }, 2)',
  frameless: 'setTimeout(function creator () { require("node:fs").readFile("/nowhere", (error) => { throw error }) }, 2)'
}

for (const [name, source] of Object.entries(escapes)) {
  const file = path.join(sloppy, `${name}.js`)
  fs.writeFileSync(file, `setTimeout(function strangerTick () {}, 5000)\n${source}\n`)
  /** @type {ReturnType<typeof node> | undefined} */
  let bareRun
  for (const { name: engine, env } of engines) {
    test(`Node prints an uncaught error with its chain: ${name}, ${engine}`, async (t) => {
      const bare = await (bareRun ??= node([file]))
      let long = await node(['-r', register, file], { env })
      const dependsOnClock = engine === 'native' && name === 'scope'
      for (let left = dependsOnClock ? ATTEMPTS : 0; left > 0 && long.stderr.includes(' · thrown here'); left--) {
        long = await node(['-r', register, file], { env })
      }
      t.is(long.code, bare.code)
      t.is(long.code, 1)
      t.is(long.stdout, '')
      const { hops } = split(long.stderr)
      t.true(hops.length > 0)
      if (engine === 'js' && name === 'scope') { // who called the function is all that is known: there it was thrown
        t.regex(hops[0].title, /thrown here/)
      } else {
        t.regex(long.stderr, /^ {4}at .*\bcreator\b/m, long.stderr)
        t.notRegex(hops.map((hop) => hop.frames).join('\n'), /stranger/i, long.stderr)
      }
      t.notRegex(long.stderr, / · reader/, 'who threw it is known')
      // Without the hops it is what Node prints; brackets stand for a missing stack.
      const expected = name === 'frameless' ? bare.stderr.replace(/\[(Error: .*)\]/, '$1') : bare.stderr
      t.is(withoutMicrotask(withoutHops(long.stderr)), withoutMicrotask(expected))
    })
  }
}

test('a rejection with a non-error reason gets its chain from its promise', async (t) => {
  const { stdout } = await node(['-r', register, '-e', `
    const trace = require('longstack')
    process.on('unhandledRejection', (reason, promise) => {
      setTimeout(() => console.log(JSON.stringify([reason, trace.chain(promise)])), 2)
    })
    setTimeout(function creator () { new Promise((resolve, reject) => setTimeout(() => reject(42), 2)) }, 1)
  `])
  const [reason, chain] = JSON.parse(stdout)
  t.is(reason, 42)
  t.is(chain[0].origin, 'settled')
  t.regex(chain[0].label, /^setTimeout\(2\)$/)
  t.true(chain.some((hop) => hop.frames.some((frame) => /creator/.test(frame.functionName))))
})

/** While any hook is on, Node 24 and later run a microtask through an AsyncResource. @param {string} text */
function withoutMicrotask (text) {
  return text.replace(/ {4}at .*(node:internal\/process\/task_queues|runInAsyncScope).*\n/g, '')
}
