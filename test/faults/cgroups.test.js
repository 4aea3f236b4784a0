'use strict'

// Container limits: a program that survives them does so with longstack, and one that they kill has all
// earlier ended spans in its file.

const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { makeGroup } = require('../helpers/cgroup')
const { compare, runOnce, temporary, ways } = require('../helpers/faults')
const { recordsOf } = require('../helpers/records')
const { register } = require('../helpers/run')

const MIN_THREADS = 10 // with fewer Node itself aborts
const MAX_THREADS = 40
const OWN_THREADS = 2 // that of spans, and that which holds signals
const SMALL = 64 << 20 // bytes; without longstack the program needs 15 MB of its own, Node's code not counted
const TO_GROW = 150 << 20 // bytes

test('a cgroup may have just the threads that the program and longstack need', async (t) => {
  const group = makeGroup(t, 'pids', ['pids.max'])
  if (group === undefined) return
  const scene = { directory: temporary(t), shell: group.enter, env: { REQUESTS: '6', THREADS: '0' } }
  for (let limit = MIN_THREADS; limit < MAX_THREADS; limit++) {
    group.limit(limit)
    const { code } = await runOnce(scene, [], {})
    if (code === 4) {
      group.limit(limit + OWN_THREADS)
      break
    }
  }
  for (const way of ways) {
    const { bare, lines } = await compare(t, scene, way)
    t.is(bare.code, 4)
    t.deepEqual(lines, [])
  }
})

test('a cgroup may have little memory', async (t) => {
  const group = makeGroup(t, 'memory', ['memory.max', 'memory.limit_in_bytes'])
  if (group === undefined) return
  group.limit(SMALL)
  const scene = { directory: temporary(t), shell: group.enter, env: { REQUESTS: '24', THREADS: '0' } }
  for (const way of ways) {
    const { bare, traced, lines } = await compare(t, scene, way)
    t.is(bare.code, 4)
    t.deepEqual(lines, [])
    t.is(traced.stats.spans.written, 48)
  }
})

test('a program that exceeds its cgroup\'s memory loses at most the last second of spans', async (t) => {
  const group = makeGroup(t, 'memory', ['memory.max', 'memory.limit_in_bytes'])
  if (group === undefined) return
  group.limit(TO_GROW)
  const directory = temporary(t)
  const file = path.join(directory, 'program.js')
  fs.writeFileSync(file, `
    const trace = require(${JSON.stringify(path.join(__dirname, '..', '..'))})
    const kept = []
    let turns = 0
    setTimeout(function grow () {
      trace.span('one', { turns }, () => {})
      kept.push(Buffer.alloc(1 << 20, 1))
      require('node:fs').writeSync(1, turns++ + ' ' + Math.floor(performance.now()) + '\\n')
      setTimeout(grow, 15)
    }, 1)`)
  const spans = path.join(directory, 'spans.jsonl')
  for (const { capture } of ways) {
    fs.rmSync(spans, { force: true })
    const own = { LONGSTACK_CAPTURE: capture, LONGSTACK_SPANS: spans }
    const { signal, stdout, stderr } = await runOnce({ directory, file, shell: group.enter }, ['-r', register], own)
    t.deepEqual([signal, stderr], ['SIGKILL', ''])
    const lines = stdout.trim().split('\n').map((line) => line.split(' ').map(Number))
    const [turns, end] = /** @type {number[]} */ (lines.at(-1))
    t.true(turns > 20, stdout)
    const text = fs.readFileSync(spans, 'utf8')
    const told = recordsOf(text).map(({ attributes }) => attributes.turns)
    t.deepEqual(told, told.map((_, i) => i))
    t.true(end - lines[told.length - 1][1] < 1000, `${told.length} of ${turns}`)
    t.is(text.at(-1), '\n')
  }
})
