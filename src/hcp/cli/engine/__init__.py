"""The engine of the command line: flag tables, the parser, help, and how results and errors are printed."""
