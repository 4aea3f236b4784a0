// The plotting library comes as a global of the page; its own types would be six packages more.
declare const d3: any
declare module 'd3-*'
