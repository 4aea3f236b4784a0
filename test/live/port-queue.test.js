'use strict'

// Concurrent commands: those that open an inspector on the same port queue.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const test = require('ava')
const { livePrograms, longstack, main } = require('../helpers/live')
const { patient } = require('../helpers/starved')
const { lockPort } = require('../../lib/ask/port-lock')

const { start } = livePrograms(test)
const live = process.platform === 'linux' ? patient(test) : test.skip
const idle = "setInterval(() => {}, 1000); console.log('ready')"

for (const [i, count] of [2, 5].entries()) {
  live(`${count} commands at once all get a response`, async (t) => {
    const port = 9360 + i
    const programs = await Promise.all(Array.from({ length: count }, (_, n) =>
      start(idle, { traced: n === 0, port })))
    const answers = await Promise.all(programs.map(({ pid }) => longstack('why', '--no-children', pid)))
    for (const [n, { stdout, stderr, code }] of answers.entries()) {
      t.is(code, 0, stderr)
      t.regex(stdout, new RegExp(`^Process ${programs[n].pid} `))
      t.regex(stderr, /^(longstack: another longstack command uses the inspector port; waiting\n)?$/)
      t.notRegex(programs[n].stderr(), /address already in use/)
    }
  })
}

live('several commands for one process at once all get a response', async (t) => {
  for (const port of [0, 9362]) {
    const { pid } = await start(idle, { port })
    const answers = await Promise.all([1, 2, 3].map(() => longstack('why', '--no-children', pid)))
    t.deepEqual(answers.map(({ code }) => code), [0, 0, 0], answers.map(({ stderr }) => stderr).join(''))
  }
})

live('a waiting command says so, and continues when the port is free', async (t) => {
  const port = 9363
  const unlock = await lockPort(String(port))
  t.teardown(unlock)
  const { pid, stderr: programErrors } = await start(idle, { port })
  const command = spawn(process.execPath, [main, 'why', '--no-children', String(pid)])
  const end = once(command, 'close')
  const [text] = await once(command.stderr, 'data')
  t.is(String(text), 'longstack: another longstack command uses the inspector port; waiting\n')
  t.is(programErrors(), '', 'no signal was sent')
  unlock()
  let stdout = ''
  for await (const part of command.stdout) stdout += part
  t.deepEqual(await end, [0, null])
  t.regex(stdout, new RegExp(`^Process ${pid} `))
})

live('a killed command leaves no lock', async (t) => {
  const port = 9364
  const holder = spawn(process.execPath, ['-e', `
    require(${JSON.stringify(require.resolve('../../lib/ask/port-lock'))}).lockPort('${port}')
      .then(() => { console.log('locked'); setInterval(() => {}, 1000) })`])
  await once(holder.stdout, 'data')
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  const { pid } = await start(idle, { port })
  const { stderr, code } = await longstack('why', '--no-children', pid)
  t.is(code, 0)
  t.is(stderr, '')
})
