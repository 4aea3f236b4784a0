'use strict'

// The type of the options. Generated from the table in options.js (npm run docs); never loaded.

/**
 * @typedef {import('./stacks/chain').HopFrame} Frame
 * @typedef {import('node:http').IncomingMessage} IncomingMessage
 *
 * @typedef {object} Options
 * @property {string[]} filter names of the subsystems whose resources get a stack; default ['*']
 * @property {number} frames frames kept per hop; default 10
 * @property {number} depth hops printed per chain; default 16
 * @property {'auto' | 'native' | 'js'} capture the capture engine; auto is native if the addon loads, else
 *   js; default auto
 * @property {boolean} internals fold nothing, and also show node: frames, raw types, Node's hops and
 *   longstack's own frames; default off
 * @property {'node_modules' | RegExp | ((frame: Frame) => boolean)} hide frames that text output folds into
 *   a count; default node_modules
 * @property {boolean | 'print'} errors append hops to the stack of errors; default on
 * @property {boolean} listeners show where the failing event listener was registered; default off
 * @property {string | undefined} signal print open handles and who opened them on this signal; default none
 * @property {boolean} whyExit print what ended the process: the call, the signal, or what was still
 *   awaited; default off
 * @property {import('./sinks/outputs').GivenOutputs | undefined} spans write a span for each request and
 *   connection to this destination; default none
 * @property {string | undefined} record record every callback to this file, for longstack report and
 *   longstack spans; default none
 * @property {string | undefined} socket answer longstack why, top and similar commands on this Unix socket;
 *   default none
 * @property {boolean} propagate send a traceparent header with outgoing requests; default off
 * @property {boolean} peek read the verb and table, or the command, from the first bytes of queries;
 *   default off
 * @property {number | undefined} blocked report callbacks that block the event loop for longer than this,
 *   ms; default none
 * @property {number} budget memory limit for contexts and stacks, bytes; default 64 MiB (67108864)
 */

module.exports = {}
