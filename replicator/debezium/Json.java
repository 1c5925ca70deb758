package replicator.debezium;

import java.nio.charset.StandardCharsets;

/**
 * Scanners over the bytes of JSON as connectors write it, without white space. Each takes the index where a value
 * begins and returns the one after it, or NO if the text does not match. What they accept, every parser accepts and
 * reads alike.
 *
 * <p>Compiled by Spark's own Janino, like the classes that use it (replicator/jvm/java_udfs.py).
 */
public final class Json {
    public static final int NO = -1;
    public static final byte[] NULL = {'n', 'u', 'l', 'l'};
    public static final byte[] TRUE = {'t', 'r', 'u', 'e'};
    public static final byte[] FALSE = {'f', 'a', 'l', 's', 'e'};
    private static final byte[] ESCAPED = {'"', '\\', '/', 'b', 'f', 'n', 'r', 't'};
    private static final int DEEPEST = 50;
    private static final int LONGEST = 8 << 20;

    private Json() {}

    /** Whether a text is so long that a parser may refuse valid JSON. */
    public static boolean isTooLong(byte[] text) {
        return text.length > LONGEST;
    }

    /** A value of any kind. */
    public static int any(byte[] text, int at) {
        return any(text, at, 0);
    }

    private static int any(byte[] text, int at, int depth) {
        switch (byteAt(text, at)) {
            case '"': return string(text, at);
            case '{': return members(text, at, depth + 1);
            case '[': return elements(text, at, depth + 1);
            case 'n': return literal(text, at, NULL);
            default: return bare(text, at);
        }
    }

    /** A boolean or a number. */
    public static int bare(byte[] text, int at) {
        switch (byteAt(text, at)) {
            case 't': return literal(text, at, TRUE);
            case 'f': return literal(text, at, FALSE);
            default: return number(text, at);
        }
    }

    private static int members(byte[] text, int at, int depth) {
        if (depth > DEEPEST) return NO;
        if (byteAt(text, at + 1) == '}') return at + 2;
        int next = at;
        do {
            next = string(text, next + 1);
            if (next == NO || byteAt(text, next) != ':') return NO;
            next = any(text, next + 1, depth);
        } while (next != NO && byteAt(text, next) == ',');
        return next != NO && byteAt(text, next) == '}' ? next + 1 : NO;
    }

    private static int elements(byte[] text, int at, int depth) {
        if (depth > DEEPEST) return NO;
        if (byteAt(text, at + 1) == ']') return at + 2;
        int next = at;
        do {
            next = any(text, next + 1, depth);
        } while (next != NO && byteAt(text, next) == ',');
        return next != NO && byteAt(text, next) == ']' ? next + 1 : NO;
    }

    public static int string(byte[] text, int at) {
        if (byteAt(text, at) != '"') return NO;
        int next = at + 1;
        while (next != NO) {
            next = behindPlain(text, next);
            int c = byteAt(text, next);
            if (c == '"') return next + 1;
            next = c == '\\' ? escaped(text, next + 1) : NO;
        }
        return NO;
    }

    /** What follows a backslash; escapes of surrogates are refused. */
    private static int escaped(byte[] text, int at) {
        if (byteAt(text, at) != 'u') return oneOf(text, at, ESCAPED);
        int first = byteAt(text, at + 1), second = byteAt(text, at + 2);
        boolean isHex = isHex(first) && isHex(second) && isHex(byteAt(text, at + 3)) && isHex(byteAt(text, at + 4));
        return isHex && (first != 'd' && first != 'D' || second >= '0' && second <= '7') ? at + 5 : NO;
    }

    private static boolean isHex(int c) {
        return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F';
    }

    /** Characters of a string that need no unescaping. */
    public static int behindPlain(byte[] text, int at) {
        int next = at;
        while (isPlain(byteAt(text, next))) next++;
        return next;
    }

    public static boolean isPlain(int c) {
        return c >= ' ' && c != '"' && c != '\\';
    }

    /** A JSON number of up to 100 digits before the point, 99 after it, and 9 in the exponent. */
    public static int number(byte[] text, int at) {
        int next = byteAt(text, at) == '-' ? at + 1 : at;
        next = byteAt(text, next) == '0' ? next + 1 : digits(text, next, 100);
        if (next == NO) return NO;
        if (byteAt(text, next) == '.') {
            next = digits(text, next + 1, 99);
            if (next == NO) return NO;
        }
        if (byteAt(text, next) == 'e' || byteAt(text, next) == 'E') {
            int sign = byteAt(text, next + 1);
            next = digits(text, sign == '+' || sign == '-' ? next + 2 : next + 1, 9);
        }
        return next;
    }

    /** A whole number of at most that many digits, in its canonical spelling. */
    public static int whole(byte[] text, int at, int most) {
        int next = byteAt(text, at) == '-' ? at + 1 : at;
        if (byteAt(text, next) == '0') return next == at ? next + 1 : NO;
        return digits(text, next, most);
    }

    /** One or more digits, at most that many. */
    public static int digits(byte[] text, int at, int most) {
        int next = at;
        while (next - at < most && byteAt(text, next) >= '0' && byteAt(text, next) <= '9') next++;
        return next == at ? NO : next;
    }

    public static int oneOf(byte[] text, int at, byte[] allowed) {
        for (int each = 0; each < allowed.length; each++) {
            if (byteAt(text, at) == allowed[each]) return at + 1;
        }
        return NO;
    }

    public static int literal(byte[] text, int at, byte[] wanted) {
        if (text.length - at < wanted.length) return NO;
        for (int next = 0; next < wanted.length; next++) {
            if (text[at + next] != wanted[next]) return NO;
        }
        return at + wanted.length;
    }

    /** A byte from 0 to 255; past the end 0, which does not occur in JSON. */
    public static int byteAt(byte[] text, int at) {
        return at < text.length ? text[at] & 0xff : 0;
    }

    public static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** The texts between separators; none for an empty text. */
    public static byte[][] parts(String texts, String separator) {
        String[] each = texts.isEmpty() ? new String[0] : texts.split(separator);
        byte[][] found = new byte[each.length][];
        for (int at = 0; at < each.length; at++) found[at] = bytes(each[at]);
        return found;
    }
}
