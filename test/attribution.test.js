'use strict'

// Whose error is it? Every way for an error to come about, read in three places, in strict and in sloppy code.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, split, withoutHops, register } = require('./helpers/run')
const cases = require('./fixtures/attribution/cases')

const fixtures = path.join(__dirname, 'fixtures', 'attribution')

/** Where the creator is proven, by case; elsewhere the hops say `reader`. `-` means: no hop at all. */
const proven = {
  timerCaught: ['same', 'later'],
  timerArrow: ['same', 'later'],
  immediate: ['same', 'later'],
  afterAwait: ['same'],
  afterAwaitCaught: ['same', 'later'],
  errorEvent: ['same', 'later'],
  fsCallback: ['same'],
  lookup: ['same'],
  connect: ['same', 'later', 'stranger'],
  asyncGenerator: ['same', 'later'],
  aggregateMember: ['same', 'later'],
  nestedTimer: ['same', 'later'],
  nestedArrows: ['same', 'later'],
  microtask: ['same', 'later'],
  startUp: '-'
}

/** A receiver is seen in sloppy code only: there these are proven wherever they are read. */
const provenByReceiver = ['timerCaught', 'timerArrow', 'immediate', 'errorEvent', 'aggregateMember', 'nestedTimer', 'nestedArrows']

const sloppy = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-sloppy-'))
for (const file of ['cases.js', 'run.js']) {
  fs.writeFileSync(path.join(sloppy, file), fs.readFileSync(path.join(fixtures, file), 'utf8').replace("'use strict'", ''))
}
test.after.always(() => fs.rmSync(sloppy, { recursive: true }))

for (const [language, folder] of [['strict', fixtures], ['sloppy', sloppy]]) {
  for (const name of Object.keys(cases)) {
    test(`${name}, ${language}`, async (t) => {
      for (const reading of ['same', 'later', 'stranger']) {
        const { stdout, stderr } = await node(['-r', register, path.join(folder, 'run.js'), name, reading])
        t.is(stderr, '', reading)
        const { stack } = JSON.parse(stdout)
        const { hops } = split(stack)
        const known = hops.filter((hop) => !/ · reader/.test(hop.title))
        const text = known.map((hop) => hop.frames).join('\n')

        t.notRegex(text, /stranger/, `${reading}: no stranger is named as the creator\n${stack}`)
        if (proven[name] === '-') {
          t.is(hops.length, 0, `${reading}: made before any asynchronous step\n${stack}`)
          continue
        }
        const must = proven[name]?.includes(reading) || (language === 'sloppy' && provenByReceiver.includes(name))
        if (must) {
          t.is(known.length, hops.length, `${reading}: the creator is proven\n${stack}`)
          t.true(known.length > 0, stack)
          t.regex(stack, /creator/, reading)
        } else if (known.length > 0) {
          t.regex(stack, /creator/, `${reading}: if somebody is named, it is the creator\n${stack}`)
        } else {
          t.true(hops.length > 0, `${reading}: the reader is told\n${stack}`)
        }
      }
    })
  }
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
  test(`uncaught as Node prints it: ${name}`, async (t) => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-'))
    const file = path.join(folder, 'program.js')
    fs.writeFileSync(file, `setTimeout(function strangerTick () {}, 5000)\n${source}\n`)
    const bare = await node([file])
    const long = await node(['-r', register, file])
    fs.rmSync(folder, { recursive: true })
    t.is(long.code, bare.code)
    t.is(long.code, 1)
    t.is(long.stdout, '')
    const { hops } = split(long.stderr)
    t.regex(long.stderr, /^ {4}at .*\bcreator\b/m, long.stderr)
    t.true(hops.length > 0)
    t.notRegex(hops.map((hop) => hop.frames).join('\n'), /stranger/i, long.stderr)
    t.notRegex(long.stderr, / · reader/, 'the failing context is known')
    // Without the hops it is what Node prints; brackets stand for a missing stack.
    const expected = name === 'frameless' ? bare.stderr.replace(/\[(Error: .*)\]/, '$1') : bare.stderr
    t.is(withoutMicrotask(withoutHops(long.stderr)), withoutMicrotask(expected))
  })
}

test('a rejection with a reason that is no error tells its story through its promise', async (t) => {
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
