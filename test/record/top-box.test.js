'use strict'

// longstack top of a process with a black box: it reads the box, and does not disturb the process.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const path = require('node:path')
const { createInterface } = require('node:readline')
const { setTimeout: wait } = require('node:timers/promises')
const test = require('ava')
const layout = require('../../lib/record/box-layout')
const { ask, boxes, cli, hasBoxes, start } = require('../helpers/box')
const { node } = require('../helpers/run')

const where = hasBoxes && process.platform === 'linux' ? test.serial : test.serial.skip
const flag = '--disable-sigusr1' // without it, its inspector could be opened
const flags = process.allowedNodeEnvironmentFlags.has(flag) ? [flag] : []

/**
 * Runs longstack top with --json, and passes on each frame.
 * @param {import('ava').ExecutionContext} t
 * @param {number | undefined} pid
 * @param {(frame: any, frames: any[]) => void} onFrame
 * @returns {Promise<{ frames: any[], stderr: string, code: number | null }>}
 */
async function watch (t, pid, onFrame) {
  const command = [cli, 'top', String(pid), '--json', '--interval', '0.5']
  const child = spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => { child.kill('SIGKILL') })
  const exit = once(child, 'exit')
  let stderr = ''
  child.stderr.on('data', (text) => { stderr += text })
  /** @type {any[]} */
  const frames = []
  for await (const line of createInterface(child.stdout)) {
    frames.push(JSON.parse(line))
    onFrame(frames.at(-1), frames)
  }
  return { frames, stderr, code: (await exit)[0] }
}

/**
 * Waits until top shows something, which takes a while on a busy machine.
 * @param {number | undefined} pid
 * @param {RegExp[]} patterns
 */
async function topWith (pid, ...patterns) {
  let answer = await node([cli, 'top', String(pid), '--once'])
  for (let i = 0; i < 20 && !patterns.every((pattern) => pattern.test(answer.stdout)); i++) {
    answer = await node([cli, 'top', String(pid), '--once'])
  }
  return answer
}

where('longstack top reads the box of a process, twice at once, until the process ends', async (t) => {
  const running = await start(t, { args: ['--worker'] })
  const { child: { pid }, ports: [port, workerPort] } = running
  for (const url of ['/await', '/await', '/wait']) ask(port, url)
  ask(workerPort, '/wait')
  await topWith(pid, /await +requests +2\.00\n/, /TCP server +2 /)
  /** when a request was answered @type {number[]} */
  const answered = []
  const load = setInterval(() => { ask(port, '/ok').then(() => answered.push(Date.now())) }, 20)
  t.teardown(() => clearInterval(load))
  const other = watch(t, pid, () => {})
  const { frames, stderr, code } = await watch(t, pid, (frame, frames) => {
    if (frames.length === 3) {
      const request = http.get({ port, path: '/wait', host: '127.0.0.1' }).on('error', () => {})
      request.setTimeout(300, () => { request.destroy() })
    }
    if (frames.length === 8) clearInterval(load)
    if (frames.length === 12) running.child.kill('SIGKILL')
  })
  t.is(code, 1)
  t.regex(stderr, /^longstack: From its black box, \S+\.box\. --ask asks .*\nlongstack: Process \d+ has ended\.\n$/)
  t.is((await other).code, 1)
  t.true((await other).frames.length > 5)
  t.is(running.stderr(), '')

  const [, second] = frames
  t.deepEqual(second.boxes.map((/** @type {string} */ file) => path.basename(file)), [`longstack-${pid}.box`])
  const ok = second.routes.find((/** @type {any} */ { name }) => name === 'GET /ok')
  t.true(ok.p50Ms >= 2 && ok.errors === 0 && ok.lost === 0, JSON.stringify(ok))
  const loaded = frames.slice(0, 8)
  const counts = loaded.map(({ windowMs, total }) => total.count * Math.min(1, 500 / windowMs))
  const counted = counts.reduce((sum, count) => sum + count)
  const share = counted / answered.length
  t.true(share > 0.5 && share < 1.5, `${share} of the requests`)
  t.true(second.inFlight >= 4 && second.oldest.ms > 1000, JSON.stringify(second.oldest))
  const awaits = second.waits.find((/** @type {any} */ { label }) => label === 'await')
  t.regex(awaits.site, /^\/await \(\S+service\.js:\d+:\d+\)$/)
  t.is(awaits.count, 2)
  const [main, worker] = second.threads
  t.deepEqual([main.threadId, worker.threadId], [0, 1])
  const { heap, loopShare, processShare, rss } = main
  t.true(rss > 1e7 && heap > 1e6 && loopShare > 0 && processShare >= 0, JSON.stringify(main))
  t.is(frames.reduce((sum, { total }) => Math.max(sum, total.lost), 0), 1, 'a client went away')
  const last = frames.at(-1)
  t.is(last.inFlight, 4)
  t.is(last.handles.find((/** @type {any} */ { noun }) => noun === 'TCP server').count, 2, 'that of the worker, too')
  t.is(last.total.count, 0)
  t.true(last.threads[0].loopShare < 0.5, 'it is idle')
  const unknown = [main.delayMs, worker.cpuShare, second.blockers, second.waitsFor]
  t.deepEqual(unknown, [null, undefined, undefined, undefined])
})

where('longstack top shows where a process is stuck, without its inspector', async (t) => {
  const running = await start(t, { flags })
  const { pid } = running.child
  ask(running.ports[0], '/spin')
  const { stdout, stderr, code } = await topWith(pid, / in spin /)
  t.is(code, 1)
  t.regex(stderr, /^longstack: From its black box, \S+\.box\. --ask asks /)
  t.regex(stdout, /^longstack top \d+ · [\d:]+ · black box \(or --ask\)\n/)
  t.regex(stdout, /in flight 1, oldest \S+ s GET \/spin\nCPU \S+ % {2}loop busy 100 % {2}RSS \S+ MB {2}heap \S+ MB\n/)
  t.true(stdout.includes(`\n${pid} has been stuck for `))
  t.regex(stdout, / has been stuck for \S+ s in spin \(service\.js:\d+\) for GET \/spin\n/)
  t.regex(stdout, /\nWaits: No request is known to wait\.\n/)
  t.notRegex(stdout, /Blockers/)
  const [{ stuck }] = JSON.parse((await node([cli, 'top', String(pid), '--once', '--json'])).stdout).threads
  t.true(stuck.ms > 1000 && stuck.request === 'GET /spin' && stuck.inside.startsWith('spin ('), JSON.stringify(stuck))
  t.is(running.stderr(), '')
})

where('a box knows the wait of a request that began shortly before a sample, with no later run', async (t) => {
  const running = await start(t)
  const [port] = running.ports
  await ask(port, '/ok') // plans a look
  await wait(700)
  ask(port, '/await')
  const { stdout } = await topWith(running.child.pid, /await +requests +1\.00\n/)
  t.regex(stdout, /await +requests +1\.00\n/)
})

where('a box does not tell what a request waited for that is over', async (t) => {
  const running = await start(t)
  const { child: { pid }, ports: [port] } = running
  const request = http.get({ port, path: '/await', host: '127.0.0.1' }).on('error', () => {})
  t.regex((await topWith(pid, /await +requests +1\.00\n/)).stdout, /await +requests +1\.00\n/)
  request.destroy()
  await wait(100)
  ask(port, '/spin') // no look follows
  const { stdout } = await topWith(pid, / in spin /)
  t.regex(stdout, / in spin /)
  t.regex(stdout, /\nWaits: No request is known to wait\.\n/)
})

where('longstack top queries a process whose box it cannot read, and says if a box is gone', async (t) => {
  const running = await start(t)
  const { pid } = running.child
  const file = path.join(running.directory, boxes(running.directory)[0])
  const { stderr, code } = await watch(t, pid, (_, frames) => {
    if (frames.length === 2) fs.renameSync(file, `${file}.away`)
  })
  t.regex(stderr, new RegExp(`\nlongstack: The black box of process ${pid} was closed or removed.\n$`))
  t.is(code, 1)
  fs.renameSync(`${file}.away`, file)
  await wait(100)
  t.regex((await node([cli, 'top', String(pid), '--once'])).stdout, /black box/)
  t.notRegex((await node([cli, 'top', String(pid), '--once', '--ask'])).stdout, /black box/)
  const box = fs.openSync(file, 'r+')
  fs.writeSync(box, Buffer.from([layout.VERSION + 1, 0, 0, 0]), 0, 4, layout.head.version)
  fs.closeSync(box)
  const asked = await node([cli, 'top', String(pid), '--once'])
  t.regex(asked.stdout, /^longstack top \d+ · [\d:]+\n.*\nCPU .* delay p99 /)
})

where('longstack top reports a long-running worker as silent, since it may only wait', async (t) => {
  const running = await start(t, { args: ['--worker'] })
  ask(running.ports[1], '/spin')
  const { stdout, code } = await topWith(running.child.pid, /thread 1.* silent \S+ s\n/)
  t.is(code, 0)
  t.notRegex(stdout, /stuck/)
  t.regex(stdout, /\n\d+ thread 1 \S+ +0 +- +- +- +\S+ MB +silent \S+ s\n/)
})
