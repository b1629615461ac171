int tool_tune(const void *a, int b, char **c); int tool_tune(const void *a, int b, char **c){(void)a;(void)b;(void)c;return 0;}
