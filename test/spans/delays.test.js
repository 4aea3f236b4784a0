'use strict'

// Delays of a span, compared with an outside measure: another process reports the time of its answer.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, register, root } = require('../helpers/run')
const { one, sound, timesOf } = require('../helpers/spans')
const { patient } = require('../helpers/starved')

const fixtures = path.join(root, 'test', 'fixtures', 'delays')
const TOLERANCE = 5 // ms: the kernel's clock has 4
const timed = patient(test)

/** @type {import('node:child_process').ChildProcess} */
let upstream
let where = ['', '']
let directory = ''

test.before(async () => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-delays-'))
  const pipe = path.join(directory, 'pipe')
  const stdio = /** @type {const} */ (['pipe', 'pipe', 'inherit'])
  const child = spawn(process.execPath, [path.join(fixtures, 'upstream.js'), pipe], { stdio })
  upstream = child
  where = [String((await once(child.stdout, 'data'))[0]).trim(), pipe]
})

test.after.always(() => {
  upstream.kill()
  fs.rmSync(directory, { recursive: true, force: true })
})

/** @param {Record<string, string>} env */
async function told (env) {
  const args = ['-r', register, path.join(fixtures, 'app.js'), ...where]
  const { stdout, stderr, code } = await node(args, { env })
  if (code !== 0 || stderr !== '') throw new Error(`${code}: ${stderr}${stdout}`)
  const { records, truths } = JSON.parse(stdout)
  return {
    records,
    spanOf: (/** @type {string} */ name) => timesOf(one(records, name)),

    /** How far a delay is from what was true. @param {string} name */
    of (name) {
      const { run, waits: [{ delayed = 0, delayed_max: max = delayed } = {}] } = timesOf(one(records, name))
      const [least, most] = truths[name]
      const text = `${name}: ${delayed} to ${max}, was ${least} to ${most}: ${JSON.stringify(one(records, name))}`
      // What the span ran since its callback began is none
      return { least: delayed - most, most: max - (least - run), exact: max === delayed, text }
    }
  }
}

const EXACT = [
  'nobody else', 'before', 'across', 'all of it', 'at its end', 'after', 'again and again', 'timer', 'own code',
  'slow reader', ...Array.from({ length: 12 }, (_, i) => `connection ${i}`), 'pool 0', 'pool 1'
]

timed('on Linux a request waits until its response arrives, and is delayed from then on', async (t) => {
  const { records, of, spanOf } = await told({})
  for (const record of records) sound(t, record)
  for (const name of EXACT) {
    const { least, most, exact, text } = of(name)
    t.true(least < TOLERANCE && most > -TOLERANCE, text)
    t.true(exact, text)
  }
  const [before, across] = [spanOf('before'), spanOf('across')]
  t.true(before.delayed < TOLERANCE + before.run && before.waited > 90, JSON.stringify(before))
  t.is(across.by[0].spanId, undefined, `and who that was: ${JSON.stringify(across)}`)
})

timed('if only polls are known, the delay is a range that includes the true value', async (t) => {
  for (const env of [{}, { LONGSTACK_CAPTURE: 'js' }]) {
    const { records, of } = await told(env)
    for (const record of records) sound(t, record)
    for (const name of ['pipe', 'fs', 'dns', 'crypto', ...('LONGSTACK_CAPTURE' in env ? EXACT : [])]) {
      const { least, most, text } = of(name)
      t.true(least < TOLERANCE && most > -TOLERANCE, `${JSON.stringify(env)} ${text}`)
    }
  }
})

timed('a request that lay in the socket: its client waited that much longer than the span shows', async (t) => {
  const { stdout, stderr, code } = await node(['-r', register, path.join(fixtures, 'queue.js')], {})
  t.is(code, 0, stderr)
  const { records, client } = JSON.parse(stdout)
  for (const [name, ms] of [
    ['GET /kept', client.kept], ['GET /fresh', client.fresh],
    ['GET /stopped', client.stopped], ['GET /stopped-fresh', client.stoppedFresh]
  ]) {
    const { attributes } = one(records, name)
    const queued = attributes['longstack.queued_ms']
    const { duration } = timesOf(one(records, name))
    t.true(queued > 20, `${name}: ${queued}`)
    t.true(queued + duration < ms + TOLERANCE, `${name}: ${queued} + ${duration} of ${ms}`)
  }
})
