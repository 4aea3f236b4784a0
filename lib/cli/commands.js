'use strict'

// The table of commands and their flags: parsing, help, "Did you mean" and what is loaded come from it.

const { ownManifest } = require('../platform')

const REGISTER = `${ownManifest().name}/register`
const MIB = 2 ** 20
const SHELLS = ['sh', 'bash', 'zsh', 'fish', 'powershell', 'pwsh', 'cmd']
const ROUTE_COLUMNS = ['name', 'rate', 'p50', 'p99', 'max', 'errors', 'lost']
const DEFAULTS = {
  shell: process.platform === 'win32' ? 'powershell' : 'sh',
  quietMs: 1000, // after which open handles count as leaks
  diffSeconds: 10,
  incidentSeconds: 10,
  profileSeconds: 5, // of a running process
  topSeconds: 1,
  watchSeconds: 2
}

/**
 * @typedef {object} Flag
 * @property {'string' | 'boolean' | 'optional'} type `optional`: a value may follow after an equals sign
 * @property {boolean} [multiple]
 * @property {string} [value] placeholder of its value in the help
 * @property {string} description for the help
 *
 * @typedef {Record<string, Flag>} Flags
 *
 * @typedef {object} Operands the arguments that are not flags
 * @property {string} [missing] what is said where there is none; undefined: there need be none
 * @property {string} [extra] what is said where there is another; undefined: there may be many
 * @property {'program' | 'program or PID'} [ends] with the first one begins the command line of a program
 *
 * @typedef {object} Command
 * @property {string} usage for the list of commands
 * @property {string} summary likewise
 * @property {string} help above the flags
 * @property {() => Flags} flags
 * @property {string} [notes] below the flags
 * @property {Operands} operands
 * @property {() => Main} load
 *
 * @typedef {(values: Record<string, any>, operands: string[]) => Promise<number | void>} Main
 *   values: by flag; resolves to the exit code, if it is not 0
 */

const NO_CHILDREN = 'no-children  without the Node processes that it has started'

/**
 * Reads flags: a name, the placeholder of its value, two spaces, a description. `[=VALUE]` may be left out,
 * `VALUE…` be repeated. What has an indent goes on.
 * @param {string} text
 * @returns {Flags}
 */
function flagsIn (text) {
  return Object.fromEntries(text.trim().replace(/\n {10,}/g, ' ').split('\n').map((line) => {
    const [, name, optional, value = optional, multiple, description] =
      /** @type {RegExpExecArray} */ (/^ *([a-z-]+)(?:\[=(\w+)\]| (\w+)(…)?)? {2}(.*)$/.exec(line))
    const type = optional !== undefined ? 'optional' : value === undefined ? 'boolean' : 'string'
    return [name, { type, value, multiple: multiple !== undefined, description }]
  }))
}

/** Returns the options of longstack as flags. @returns {Flags} */
function optionFlags () {
  const { rules } = require('../options')
  return Object.fromEntries(Object.values(rules).map((rule) => {
    const { allowed, flag, placeholder, purpose, flagPurpose = purpose, variable, written = allowed } = rule
    const values = placeholder === undefined ? '' : `: ${written}`
    const description = `${flagPurpose}${values}; as ${variable}${describeDefault(rule)}`
    return [flag, { type: placeholder === undefined ? 'boolean' : 'string', value: placeholder, description }]
  }))
}

/** @param {import('../options').Rule} rule */
function describeDefault ({ initial, unit }) {
  if (initial === undefined || initial === false) return ''
  if (initial === true) return '=off'
  return unit === 'bytes' ? `, default ${initial / MIB} MiB (${initial})` : `, default ${initial}`
}

/** @type {Record<string, Command>} */
const commands = {
  PID: {
    usage: 'PID|:PORT',
    summary: 'what is wrong with a running process: look for ten seconds, print one screen',
    load: () => require('../incident/command').main,
    operands: { missing: 'Missing process id, port or address.', extra: 'One target at a time.' },
    help: `Looks at a running process for ten seconds, prints what is wrong with it, worst first, each with
function and line, and which command to run next: what blocks, who waits, what is slow, what failed, what
grows. Its workers, and the Node processes that it has started, are looked at as well.

  longstack PID [flags]              a process
  longstack :PORT [flags]            the processes at a port
  longstack ADDRESS:PORT [flags]     the same for an address
  longstack PATH [flags]             processes that listen on LONGSTACK_SOCKET

Flags may stand before the process as well: longstack --json 4711.
A process that is not traced is traced for that time, and left as it was.`,
    flags: () => flagsIn(`
      seconds N  for how long; default ${DEFAULTS.incidentSeconds}, or Ctrl-C
      ${NO_CHILDREN}
      json  print what was found as one JSON object`),
    notes: 'Exit code: 0, whatever was found; 1 if a process or a thread cannot be asked or is blocked; 2 ' +
      'for wrong usage.'
  },

  run: {
    usage: 'run app.js [args]',
    summary: 'run a program with long stack traces',
    load: () => require('./run').run,
    operands: { missing: 'Missing script argument.', ends: 'program' },
    help: `Runs a program with long stack traces, like node -r ${REGISTER}.

  longstack run [flags] app.js [args of the program]

Flags stand before the script; what follows are arguments of the program. Options not given as flags are
read from LONGSTACK_* variables.`,
    flags: () => ({
      ...optionFlags(),
      ...flagsIn(`
      fail-on-leak[=MS]  exit with code 3, and print what is open and who opened it, when the program is idle
          for MS ms (default ${DEFAULTS.quietMs}) but does not end (repeating timers count as idle)
      why-still-running[=MS]  print what is open and who opened it, once, when the program is idle for MS ms
          (default ${DEFAULTS.quietMs}) but does not end; it goes on
      node-options FLAGS  flags for node itself, for example
          "--enable-source-maps --max-old-space-size=4096"`)
    }),
    notes: "Exit code: the program's; 3 for a leak, 2 for wrong usage of this command."
  },

  env: {
    usage: 'env',
    summary: 'print the variables that preload longstack into every Node process',
    load: () => require('./env').main,
    operands: { extra: 'longstack env takes no arguments.' },
    help: `Prints the variables that preload longstack into every Node process, wherever it is started.

  eval "$(longstack env)"                                       sh, bash, zsh
  longstack env --shell fish | source                           fish
  longstack env --shell powershell | Out-String | iex           PowerShell
  longstack env --shell cmd > env.cmd && env.cmd                cmd

NODE_OPTIONS keeps what it has. Files in options are relative to the directory of each process.`,
    flags: () => ({
      ...optionFlags(),
      ...flagsIn(`
      shell SHELL  ${SHELLS.slice(0, -1).join(', ')} or ${SHELLS.at(-1)}; default ${DEFAULTS.shell}
      json  the variables as a JSON object`)
    })
  },

  report: {
    usage: 'report FILE…',
    summary: 'summarize a recording, or spans: verdict, quartiles, waits, failures, blockers, slowest ' +
      'requests; compare two runs, check limits',
    load: () => require('./report').main,
    operands: { missing: 'Missing file argument.' },
    help: `Summarizes requests: what is wrong; per route count, rate, errors, quartiles and where requests
waited; what failed; blockers; the slowest requests; and those still open.

  longstack report [flags] FILE…

A file is a recording, as LONGSTACK_RECORD=FILE node -r ${REGISTER} app.js writes it, or holds
one span per line, as LONGSTACK_SPANS=FILE or OpenTelemetry's file exporter writes them; it may be compressed
with gzip. - is standard input. Several files are one run: of several processes, or the parts of a recording
that was rotated.`,
    flags: () => flagsIn(`
      compare FILE…  another run to compare with; changes are from the first run to this one. Can be repeated
      top N  number of routes, blockers, failures and slow requests to print
      full  print quartiles, densities, boxes, all waits, the tree, stacks
      tree  print where the time went along chains of calls and waits
      slowest  the same of the slowest 1 % of the requests of each route
      route ROUTE  print only this route: "GET /report", with * for anything: "GET /users/*"
      fail-if LIMIT…  exit with 3 if a route exceeds a limit: "p99 > +10 %" against the first run,
          "GET /report: median > 200 ms", "errors > 1 %". Can be repeated
      json  print the whole report as one JSON object
      markdown  print tables for a pull request
      html OUT  write a self-contained page for the browser
      trace OUT  write the spans as Chrome trace events, for https://ui.perfetto.dev or chrome://tracing`),
    notes: `LIMIT is [ROUTE:] METRIC COMPARATOR VALUE. METRIC: p50 (median), p99, p999, mean, max, wait, run,
delayed (means), errors, rate, count. COMPARATOR: >, <, >= or <=. VALUE: 200 ms or 1 %; signed, it is the
change from the first run to that of --compare: +10 %, +5 ms, -20 %. Without ROUTE it holds for every route of
servers.

Text is as wide as the terminal, or as COLUMNS says.

Exit code: 0; 1 if a file cannot be read or no spans are found; 2 for wrong usage; 3 if a limit is
exceeded.`
  },

  spans: {
    usage: 'spans FILE…',
    summary: 'print the spans of a recording as lines of JSON',
    load: () => require('./spans').main,
    operands: { missing: 'Missing file argument.' },
    help: `Prints the spans of a recording, one line of JSON for each, as LONGSTACK_SPANS=FILE writes them:
for jq, for other tools, or to keep less than the recording.

  longstack spans [flags] FILE…

A file is a recording, as LONGSTACK_RECORD=FILE node -r ${REGISTER} app.js writes it; it may be
compressed with gzip. - is standard input. What is missing in a recording is printed to standard error.`,
    flags: () => flagsIn(`
      follow  continue with what is appended to the file, until Ctrl-C`),
    notes: 'Exit code: 0; 1 if a file cannot be read or is no recording; 2 for wrong usage.'
  },

  why: {
    usage: 'why PID|:PORT',
    summary: 'what a running process has open and why, requests in flight, awaits that hang',
    load: () => require('./live').why,
    operands: { missing: 'Missing process id, port or address.', extra: 'One target at a time.' },
    help: `Prints what a running process has open and who opened it, which requests are in flight, and what
is awaited and never settled. Its workers, and the Node processes that it has started, answer as well.

  longstack why [flags] PID              a process
  longstack why [flags] :PORT            the processes at a port, and their connections there
  longstack why [flags] ADDRESS:PORT     the same for an address, such as 127.0.0.1:5432
  longstack why [flags] PATH             processes that listen on LONGSTACK_SOCKET

A process is asked by its inspector, which is open for a moment and prints a line on its standard error; with
LONGSTACK_SOCKET without either. What it knows of who opened what begins with longstack: node -r
${REGISTER}, or longstack attach PID.`,
    flags: () => flagsIn(`
      only NAMES  only what these subsystems have open, for example TCP,PIPE
      older-than SECONDS  only awaits that are older; default 0
      ${NO_CHILDREN}
      watch[=SECONDS]  ask again every SECONDS (default ${DEFAULTS.watchSeconds}), until Ctrl-C
      json  print the answer as one JSON object; with --watch, one a line`),
    notes: 'Exit code: 1 if a process or a thread cannot be asked or is blocked, 2 for wrong usage.'
  },

  diff: {
    usage: 'diff PID',
    summary: 'what it opens in ten seconds and does not close',
    load: () => require('./live').diff,
    operands: { missing: 'Missing process id.', extra: 'One target at a time.' },
    help: `Prints what a running process has opened in some seconds and not closed, by who opened it, with
its growth per minute: what leaks, under load. A process without longstack is traced for that time.

  longstack diff [flags] PID|:PORT|ADDRESS:PORT|PATH of LONGSTACK_SOCKET`,
    flags: () => flagsIn(`
      seconds N  for how long; default ${DEFAULTS.diffSeconds}, or Ctrl-C
      ${NO_CHILDREN}
      json  print the answer as one JSON object`),
    notes: 'Exit code: 1 if the process cannot be asked, 2 for wrong usage.'
  },

  attach: {
    usage: 'attach PID',
    summary: 'trace a process that was started without longstack, until Ctrl-C',
    load: () => require('./live').attach,
    operands: { missing: 'Missing process id.', extra: 'One process at a time.' },
    help: `Traces a running process from now on, until Ctrl-C: errors get long stacks, longstack why, top
and profile know who opened what and what waits. At the end prints what was opened in this time and is still
open, and leaves the process as it was: also if this command is killed.

  longstack attach [flags] PID

What was opened before is early: of it only what the handles themselves tell is known.`,
    flags: () => flagsIn(`
      spans OUT  the process writes a span for each request and connection to this file or OTLP URL
      blocked MS  print what blocks its event loop for longer
      only NAMES  the option filter, for example TCP,HTTP
      seconds N  detach after N seconds; default: Ctrl-C
      ${NO_CHILDREN}
      json  print JSON: a line for what blocks, at the end what was opened`),
    notes: 'Exit code: 1 if the process cannot be asked, 2 for wrong usage.'
  },

  profile: {
    usage: 'profile app.js|PID',
    summary: 'where async time of a process goes, with CPU samples',
    load: () => require('./profile').main,
    operands: {
      missing: 'Missing script or process id.', extra: 'One process at a time.', ends: 'program or PID'
    },
    help: `Prints where async time of a process goes: per chain of callbacks how long it ran and how long
it waited, with CPU samples under the chain that ran.

  longstack profile [flags] app.js [args]    from its start until it ends, or Ctrl-C
  longstack profile [flags] PID              a running process of this machine

Flags stand before the script; what follows are arguments of the program. Its output stays what it is: the
text goes to standard error when the program has ended or the time is over.`,
    flags: () => flagsIn(`
      seconds N  how long, at most 1800; default: until the program ends, or
          ${DEFAULTS.profileSeconds} for a PID
      html FILE  write a page for the browser with a flame graph
      pprof FILE  write the format of pprof, for go tool pprof
      collapsed FILE  write a line per stack, for speedscope
      value WHAT  of collapsed stacks: ran (default), waited or cpu
      json  print the profile as one JSON object
      no-samples  without CPU samples of V8's profiler`),
    notes: "Exit code: the program's; 1 if a process cannot be asked, 2 for wrong usage."
  },

  top: {
    usage: 'top PID',
    summary: 'a running process live: routes, latency, event loop, CPU, blockers, waits, open handles',
    load: () => require('../top/command').main,
    operands: { missing: 'Missing process id, port or address.', extra: 'One target at a time.' },
    help: `Shows what a running process does: its routes with rate and latency, how late its event loop is,
CPU, what blocks, where it waits, what is open and grows; of its workers, and of the Node processes that it
has started, as well.

  longstack top [flags] PID              a process
  longstack top [flags] :PORT            the processes at a port
  longstack top [flags] ADDRESS:PORT     the same for an address
  longstack top [flags] PATH             processes that listen on LONGSTACK_SOCKET

On a terminal it is a screen with keys (? lists them), elsewhere a table for each look. Latency is the time
from the head of a request to the last byte of its response.`,
    flags: () => flagsIn(`
      interval SECONDS  between two looks, 0.1 to 3600; default ${DEFAULTS.topSeconds}
      once  look for two seconds, print what there is, and end
      json  a line of JSON for each look
      sort COLUMN  of routes: ${ROUTE_COLUMNS.join(', ')}
      only TEXT  only routes whose name contains it
      blocked MS  report callbacks that block the event loop for as long; until top ends
      ${NO_CHILDREN}`),
    notes: 'Exit code: 0; 1 if the process cannot be asked or has ended, 2 for wrong usage.'
  },

  metrics: {
    usage: 'metrics PID',
    summary: 'figures of a running process for dashboards, as OpenMetrics text',
    load: () => require('./live').metrics,
    operands: { missing: 'Missing process id, port or address.', extra: 'One target at a time.' },
    help: `Prints figures of a running process as OpenMetrics text: how late its event loop is, requests in
flight and how long they took, open handles by who opened them, awaits by place; of its workers, and of the
Node processes that it has started, as well.

  longstack metrics [flags] PID|:PORT|ADDRESS:PORT|PATH of LONGSTACK_SOCKET

What is measured over time is measured from the first question on, until 15 minutes pass without one. The
first command looks for two seconds. A socket answers GET /metrics by HTTP as well: curl --unix-socket PATH
http://localhost/metrics.`,
    flags: () => flagsIn(`
      ${NO_CHILDREN}
      json  print an array of what trace.metrics() returns in each thread`),
    notes: 'Exit code: 1 if a process or a thread cannot be asked or is blocked, 2 for wrong usage.'
  },

  doctor: {
    usage: 'doctor',
    summary: 'print what is in force on this machine, and why',
    load: () => require('./run').doctor,
    operands: { extra: 'longstack doctor takes no arguments.' },
    help: `Prints what is in force on this machine, with this Node and this environment, and why.
In a program, call trace.doctor().

  longstack doctor [--json]`,
    flags: () => flagsIn('json  the same as data')
  }
}

module.exports = { DEFAULTS, REGISTER, ROUTE_COLUMNS, SHELLS, commands }
