'use strict'

// Table of commands and their flags: source of parsing, help, "Did you mean" and lazy loading.

const { ownManifest } = require('../platform')

const REGISTER = `${ownManifest().name}/register`
const MIB = 2 ** 20
const SHELLS = ['sh', 'bash', 'zsh', 'fish', 'powershell', 'pwsh', 'cmd']
const ROUTE_COLUMNS = ['name', 'rate', 'p50', 'p99', 'max', 'errors', 'lost']
const DEFAULTS = {
  shell: process.platform === 'win32' ? 'powershell' : 'sh',
  quietMs: 1000, // open handles count as leaks after this
  diffSeconds: 10,
  incidentSeconds: 10,
  profileSeconds: 5, // for a running process
  topSeconds: 1,
  watchSeconds: 2
}

/**
 * @typedef {object} Flag
 * @property {'string' | 'boolean' | 'optional'} type `optional`: a value may follow an equals sign
 * @property {boolean} [multiple]
 * @property {string} [value] placeholder of its value in the help
 * @property {string} description for the help
 *
 * @typedef {Record<string, Flag>} Flags
 *
 * @typedef {object} Operands arguments that are not flags
 * @property {string} [missing] message if there is none; undefined if none is required
 * @property {string} [extra] message if there is more than one; undefined if many are allowed
 * @property {'program' | 'program or PID'} [ends] the first operand starts a program's command line
 *
 * @typedef {object} Command
 * @property {string} usage in the list of commands
 * @property {string} summary in the list of commands
 * @property {string} help printed above the flags
 * @property {() => Flags} flags
 * @property {string} [notes] printed below the flags
 * @property {Operands} operands
 * @property {() => Main} load
 *
 * @typedef {(values: Record<string, any>, operands: string[]) => Promise<number | void>} Main
 *   values: by flag; resolves to the exit code unless it is 0
 */

const NO_CHILDREN = 'no-children  leave out Node processes started by the target'

/**
 * Parses a table of flags: a name, the placeholder of its value, two spaces, a description. `[=VALUE]` is
 * optional, `VALUE…` repeatable. Indented lines continue the description.
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
    summary: 'diagnose a running process: watch it for ten seconds, print one screen',
    load: () => require('../incident/command').main,
    operands: { missing: 'Missing process id, port or address.', extra: 'One target at a time.' },
    help: `Watches a running process for ten seconds, then prints its problems, worst first, with function
and line: blocking callbacks, waits, slow routes, failures, growth. The last line is the command to run next.
Workers and Node processes started by the target are included.

  longstack PID [flags]              a process
  longstack :PORT [flags]            the processes using a port
  longstack ADDRESS:PORT [flags]     the same for an address
  longstack PATH [flags]             the processes listening on LONGSTACK_SOCKET

Flags may also come first: longstack --json 4711.
A process without longstack is traced for this time only, and then left as it was. The black box of a process
is read in place of it, at once and without disturbing it, unless --seconds or --until is given.`,
    flags: () => flagsIn(`
      seconds N  duration; default ${DEFAULTS.incidentSeconds}; Ctrl-C ends it early
      until LIMIT  first wait, tracing the process, until the last ten seconds exceed a limit, for example
          "p99 > 500 ms", "GET /report: max > 2 s" or "errors > 1 %", or its event loop is blocked
      html FILE  also write an HTML page with the recorded requests
      ${NO_CHILDREN}
      json  print the findings as one JSON object`),
    notes: 'Exit code: 0, with or without findings; 1 if a process or thread does not respond or is ' +
      'blocked; 2 for wrong usage.'
  },

  run: {
    usage: 'run app.js [args]',
    summary: 'run a program with long stack traces',
    load: () => require('./run').run,
    operands: { missing: 'Missing script argument.', ends: 'program' },
    help: `Runs a program with long stack traces, like node -r ${REGISTER}.

  longstack run [flags] app.js [args of the program]

Flags come before the script; everything after it is passed to the program. Options not given as flags are
read from LONGSTACK_* variables.`,
    flags: () => ({
      ...optionFlags(),
      ...flagsIn(`
      fail-on-leak[=MS]  if the program is idle for MS ms (default ${DEFAULTS.quietMs}) but does not end,
          print open handles and who opened them, and exit with code 3; repeating timers count as idle
      why-still-running[=MS]  if the program is idle for MS ms (default ${DEFAULTS.quietMs}) but does not end,
          print open handles and who opened them, once; the program continues
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
    help: `Prints the environment variables that preload longstack into every Node process started with them.

  eval "$(longstack env)"                                       sh, bash, zsh
  longstack env --shell fish | source                           fish
  longstack env --shell powershell | Out-String | iex           PowerShell
  longstack env --shell cmd > env.cmd && env.cmd                cmd

An existing NODE_OPTIONS is extended. Relative files in options are resolved by each process.`,
    flags: () => ({
      ...optionFlags(),
      ...flagsIn(`
      shell SHELL  ${SHELLS.slice(0, -1).join(', ')} or ${SHELLS.at(-1)}; default ${DEFAULTS.shell}
      json  print the variables as a JSON object`)
    })
  },

  report: {
    usage: 'report FILE…',
    summary: 'analyze a recording, spans or black boxes: verdict, latency by route, waits, failures, ' +
      'blockers, slowest requests; compare two runs; enforce limits',
    load: () => require('./report').main,
    operands: { missing: 'Missing file argument.' },
    help: `Analyzes recorded requests. Prints the verdict; count, rate, errors, latency and waits per route;
failures; blockers; the slowest requests; and requests still open.

  longstack report [flags] FILE…

FILE is a recording (LONGSTACK_RECORD=FILE node -r ${REGISTER} app.js) or a file of spans, one
per line (LONGSTACK_SPANS=FILE, or OpenTelemetry's file exporter). It may be compressed with gzip; - reads
standard input. Several files form one run: one per process, or the parts of a rotated recording.

FILE may also be a black box (LONGSTACK_BOX=DIR node -r ${REGISTER} app.js), or the directory of black boxes:
then those of processes that died are read. "longstack DIR" is short for that.`,
    flags: () => flagsIn(`
      compare FILE…  compare the first run with this one; repeatable
      top N  number of routes, blockers, failures and slow requests to print
      full  print quartiles, histograms, box plots, all waits, the tree and stacks
      tree  print time spent along chains of calls and waits
      slowest  print that tree for the slowest 1 % of requests of each route
      route ROUTE  print only this route, for example "GET /report" or "GET /users/*"
      fail-if LIMIT…  exit with 3 if a route exceeds a limit, for example "GET /report: median > 200 ms",
          "errors > 1 %", or "p99 > +10 %" with --compare; repeatable
      what-if CHANGE…  predict latency with another number of connections, for example
          "pool 127.0.0.1:5432 6 -> 12"; repeatable
      json  print the whole report as one JSON object
      markdown  print tables for a pull request
      html OUT  write a self-contained HTML page
      trace OUT  write Chrome trace events, for https://ui.perfetto.dev or chrome://tracing`),
    notes: `LIMIT is [ROUTE:] METRIC COMPARATOR VALUE. METRIC: p50 (median), p99, p999, mean, max, wait, run,
delayed (means), errors, rate, count. COMPARATOR: >, <, >= or <=. VALUE: 200 ms or 1 %; with a sign, the
change from the first run to the --compare run: +10 %, +5 ms, -20 %. Without ROUTE, the limit applies to every
server route.

Text is as wide as the terminal, or COLUMNS columns.

Exit code: 0; 1 if a file cannot be read or no spans are found; 2 for wrong usage; 3 if a limit is
exceeded.`
  },

  spans: {
    usage: 'spans FILE…',
    summary: 'convert a recording to spans, one JSON object per line',
    load: () => require('./spans').main,
    operands: { missing: 'Missing file argument.' },
    help: `Converts a recording to spans, one JSON object per line, in the format of LONGSTACK_SPANS=FILE: for
jq, for other tools, or to archive less than the recording.

  longstack spans [flags] FILE…

FILE is a recording (LONGSTACK_RECORD=FILE node -r ${REGISTER} app.js). It may be compressed with
gzip; - reads standard input. Gaps in the recording are reported on standard error. A black box
(LONGSTACK_BOX=DIR) is read as well.`,
    flags: () => flagsIn(`
      follow  wait for appended data, until Ctrl-C`),
    notes: 'Exit code: 0; 1 if a file cannot be read or is not a recording; 2 for wrong usage.'
  },

  why: {
    usage: 'why PID|:PORT',
    summary: 'list open handles of a running process and who opened them, requests in flight, pending awaits',
    load: () => require('./live').why,
    operands: { missing: 'Missing process id, port or address.', extra: 'One target at a time.' },
    help: `Prints a running process's open handles and who opened them, its requests in flight, and its
pending awaits. Workers and Node processes started by the target are included.

  longstack why [flags] PID              a process
  longstack why [flags] :PORT            the processes using a port, and their connections to it
  longstack why [flags] ADDRESS:PORT     the same for an address, such as 127.0.0.1:5432
  longstack why [flags] PATH             the processes listening on LONGSTACK_SOCKET

The target's inspector is opened for a moment, which prints a line on its standard error; with
LONGSTACK_SOCKET neither happens. Openers are known only for handles opened while longstack is active: node -r
${REGISTER}, or longstack attach PID.

If the target has a black box (LONGSTACK_BOX), "why PID" reads that instead: requests in flight and what they
wait for, open handles by opener. This does not disturb the target, and works if its event loop is blocked.
--ask, --only, --older-than, a port or an address query the target.`,
    flags: () => flagsIn(`
      only NAMES  only handles of these subsystems, for example TCP,PIPE
      older-than SECONDS  only awaits pending for longer; default 0
      ask  query the target even if it has a black box: it knows stacks, addresses and all awaits
      ${NO_CHILDREN}
      watch[=SECONDS]  repeat every SECONDS (default ${DEFAULTS.watchSeconds}), until Ctrl-C
      json  print one JSON object; with --watch, one per line`),
    notes: 'Exit code: 1 if a process or thread does not respond or is blocked, 2 for wrong usage.'
  },

  diff: {
    usage: 'diff PID',
    summary: 'list handles opened within ten seconds and not closed',
    load: () => require('./live').diff,
    operands: { missing: 'Missing process id.', extra: 'One target at a time.' },
    help: `Prints handles that a running process opens within a few seconds and does not close, grouped by
opener, with their growth per minute. Under load, these are leaks. A process without longstack is traced for
this time only.

  longstack diff [flags] PID|:PORT|ADDRESS:PORT|PATH of LONGSTACK_SOCKET`,
    flags: () => flagsIn(`
      seconds N  duration; default ${DEFAULTS.diffSeconds}; Ctrl-C ends it early
      ${NO_CHILDREN}
      json  print one JSON object`),
    notes: 'Exit code: 1 if the process does not respond, 2 for wrong usage.'
  },

  attach: {
    usage: 'attach PID',
    summary: 'trace a process that was started without longstack, until Ctrl-C',
    load: () => require('./live').attach,
    operands: { missing: 'Missing process id.', extra: 'One process at a time.' },
    help: `Traces a running process until Ctrl-C: errors get long stacks, and longstack why, top and profile
can name openers and waits. At the end it prints handles that were opened meanwhile and are still open. The
process is then left as it was, even if this command is killed.

  longstack attach [flags] PID|:PORT|ADDRESS:PORT|PATH of LONGSTACK_SOCKET

Handles opened earlier are marked early; their opener is unknown.`,
    flags: () => flagsIn(`
      spans OUT  have the process write a span per request and connection to this file or OTLP URL
      blocked MS  print callbacks that block its event loop for longer
      only NAMES  trace only these subsystems, for example TCP,HTTP
      seconds N  detach after N seconds; default: on Ctrl-C
      ${NO_CHILDREN}
      json  print JSON: one line per blocking callback, then the open handles`),
    notes: 'Exit code: 1 if the process does not respond, 2 for wrong usage.'
  },

  profile: {
    usage: 'profile app.js|PID',
    summary: 'profile async time of a process, with CPU samples',
    load: () => require('./profile').main,
    operands: {
      missing: 'Missing script or process id.', extra: 'One process at a time.', ends: 'program or PID'
    },
    help: `Profiles async time: for each chain of callbacks, how long it ran and how long it waited, with CPU
samples below the chain that ran.

  longstack profile [flags] app.js [args]    from start to exit, or Ctrl-C
  longstack profile [flags] PID              a running process on this machine

Flags come before the script; everything after it is passed to the program. The program's own output is
unchanged: the profile goes to standard error at the end.`,
    flags: () => flagsIn(`
      seconds N  duration, at most 1800; default: until the program ends, or
          ${DEFAULTS.profileSeconds} for a PID
      html FILE  write an HTML page with a flame graph
      pprof FILE  write a pprof profile, for go tool pprof
      collapsed FILE  write collapsed stacks, for speedscope
      value WHAT  value of collapsed stacks: ran (default), waited or cpu
      json  print the profile as one JSON object
      no-samples  do not run V8's CPU profiler`),
    notes: "Exit code: the program's; 1 if a process cannot be asked, 2 for wrong usage."
  },

  top: {
    usage: 'top PID',
    summary: 'watch a running process: routes, latency, event loop, CPU, blockers, waits, open handles',
    load: () => require('../top/command').main,
    operands: { missing: 'Missing process id, port or address.', extra: 'One target at a time.' },
    help: `Shows a running process live: rate and latency by route, event loop delay, CPU, blocking callbacks,
waits, open handles and their growth. Workers and Node processes started by the target are included.

  longstack top [flags] PID              a process
  longstack top [flags] :PORT            the processes using a port
  longstack top [flags] ADDRESS:PORT     the same for an address
  longstack top [flags] PATH             the processes listening on LONGSTACK_SOCKET

On a terminal it is an interactive screen (? lists the keys); otherwise it prints one table per interval.
Latency runs from the head of a request to the last byte of its response.

If the target has a black box (LONGSTACK_BOX), that is read instead, which does not disturb the target and
works while its event loop is blocked. --ask and --blocked query the target, and read the box only if that
does not respond.`,
    flags: () => flagsIn(`
      interval SECONDS  refresh interval, 0.1 to 3600; default ${DEFAULTS.topSeconds}
      once  measure for two seconds, print one table, and exit
      json  print one line of JSON per interval
      sort COLUMN  sort routes by ${ROUTE_COLUMNS.join(', ')}
      only TEXT  only routes whose name contains TEXT
      blocked MS  report callbacks that block the event loop for longer
      ask  query the target even if it has a black box: it knows event loop delay, blockers, all awaits
      ${NO_CHILDREN}`),
    notes: `Exit code: 0; 1 if the process does not respond, has ended or, with --once, is stuck; 2 for wrong
usage.`
  },

  metrics: {
    usage: 'metrics PID',
    summary: 'print metrics of a running process as OpenMetrics text, for dashboards',
    load: () => require('./live').metrics,
    operands: { missing: 'Missing process id, port or address.', extra: 'One target at a time.' },
    help: `Prints metrics of a running process as OpenMetrics text: event loop delay, requests in flight and
their latency, open handles by opener, pending awaits by place. Workers and Node processes started by the
target are included.

  longstack metrics [flags] PID|:PORT|ADDRESS:PORT|PATH of LONGSTACK_SOCKET

Measuring starts with the first call, which takes two seconds, and stops 15 minutes after the last one.
LONGSTACK_SOCKET also serves GET /metrics over HTTP: curl --unix-socket PATH http://localhost/metrics.`,
    flags: () => flagsIn(`
      ${NO_CHILDREN}
      json  print trace.metrics() of each thread, as an array`),
    notes: 'Exit code: 1 if a process or thread does not respond or is blocked, 2 for wrong usage.'
  },

  doctor: {
    usage: 'doctor',
    summary: "check longstack's setup on this machine",
    load: () => require('./run').doctor,
    operands: { extra: 'longstack doctor takes no arguments.' },
    help: `Checks longstack's setup on this machine: the engine, the options in effect, and why.
In a program, call trace.doctor().

  longstack doctor [--json]`,
    flags: () => flagsIn('json  print it as JSON')
  }
}

module.exports = { DEFAULTS, REGISTER, ROUTE_COLUMNS, SHELLS, commands }
